//! The loss of a process: what needed it fails and says so, what does not goes on.

use lockstep::ifrt::{Code, ExecuteOptions};

use crate::executions::{compile_on, counting_from, launch, sum};
use crate::fixture::{Fixture, elements, rows_over};
use crate::{Case, cases};

/// Runs on a job of its own, whose last process ends in it.
pub(crate) const CASES: &[Case] = cases![survivors_go_on];

fn survivors_go_on(fixture: &Fixture) {
    let client = &fixture.client;
    let n = fixture.devices().len();
    let program = compile_on(fixture, &sum(n), fixture.devices()).unwrap();
    let array = fixture.counting(0, &[2 * n], &fixture.rows(1));
    launch(&*program, &array).ready().wait().unwrap();
    if client.process_index() + 1 == client.process_count() {
        // No destructor runs: nobody is told goodbye.
        std::process::exit(3);
    }
    let lost = format!("rank {}", client.process_count() - 1);
    let result = program.execute(std::slice::from_ref(&array), &ExecuteOptions::default()).unwrap();
    for status in [
        result.status.wait().unwrap_err(),
        result.outputs[0].ready().wait().unwrap_err(),
        launch(&*program, &result.outputs[0]).ready().wait().unwrap_err(),
        client.resharded(&array, fixture.replicated()).unwrap().ready().wait().unwrap_err(),
        launch(&*program, &array).ready().wait().unwrap_err(),
    ] {
        assert_eq!(status.code(), Code::Unavailable, "{status}");
        assert!(status.message().contains(&lost), "{status}");
    }

    let own = client.addressable_devices().clone();
    let local = compile_on(fixture, &sum(own.len()), &own).unwrap();
    let array = fixture.counting(3, &[2 * own.len()], &rows_over(own.clone(), 1));
    launch(&*local, &array).ready().wait().unwrap();
    let replicated = lockstep::ifrt::Sharding::replicated(own.clone()).unwrap();
    let moved = client.resharded(&array, replicated).unwrap();
    assert_eq!(elements(&*moved).unwrap(), counting_from(3, 2 * own.len()));
}
