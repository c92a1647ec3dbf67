//! Jobs of several processes, each a thread with a world of its own, around a real coordinator.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use lockstep_collectives::{
    Attempt, Coordinator, CoordinatorOptions, Environment, JobId, JobSecret, KeySource, Limits,
    Rank,
};

use super::*;

/// What a test is given to wait for things that come; longer than any of them takes.
const AMPLE: Duration = Duration::from_secs(30);

/// Runs `process` for each rank, with so many devices each, and returns what each returns.
fn job<T: Send>(
    devices: &[u32],
    collective_timeout: Duration,
    run: &(dyn Fn(u32) -> Box<Run> + Sync),
    process: impl Fn(u32, &Client) -> T + Sync,
) -> Vec<T> {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let secret = JobSecret::generate().unwrap();
    secret.write_new(&key).unwrap();
    let job = JobId::new("client-test").unwrap();
    let world_size = u32::try_from(devices.len()).unwrap();
    let coordinator = Coordinator::start(CoordinatorOptions {
        bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        job: job.clone(),
        attempt: Attempt(0),
        world_size,
        secret,
        heartbeat_timeout: AMPLE,
    })
    .unwrap();
    let join = |rank: u32, devices: u32| {
        let environment = Environment {
            rank: Rank(rank),
            world_size,
            local_rank: rank,
            local_size: world_size,
            local_processors: None,
            coordinator: coordinator.address().to_string(),
            coordinator_hosted: true,
            job: job.clone(),
            attempt: Attempt(0),
            key: KeySource::File(key.clone()),
            devices,
        };
        let limits = Limits { collective: collective_timeout, init: AMPLE, ..Limits::default() };
        let backend = FakeBackend { devices: devices as usize, run: Arc::from(run(rank)) };
        Client::new(World::join(&environment, limits).unwrap(), Arc::new(backend)).unwrap()
    };
    std::thread::scope(|scope| {
        let processes: Vec<_> = (0..)
            .zip(devices)
            .map(|(rank, &devices)| {
                let (join, process) = (&join, &process);
                scope.spawn(move || process(rank, &join(rank, devices)))
            })
            .collect();
        processes.into_iter().map(|process| process.join().unwrap()).collect()
    })
}

fn sums(_rank: u32) -> Box<Run> {
    Box::new(|_, arguments, context| Ok(vec![sum(context, &arguments[0])?]))
}

/// Runs nothing.
fn never(_rank: u32) -> Box<Run> {
    Box::new(|device, _, _| panic!("{device:?} ran"))
}

fn launch(step: &dyn LoadedExecutable, argument: &ArrayRef) -> ArrayRef {
    let arguments = [Arc::clone(argument)];
    step.execute(&arguments, &ExecuteOptions::default()).unwrap().outputs.remove(0)
}

fn the_one_message(errors: Vec<Status>) -> (Code, String) {
    let mut all: Vec<_> =
        errors.into_iter().map(|error| (error.code(), error.message().to_owned())).collect();
    assert!(all.iter().all(|error| *error == all[0]), "{all:#?}");
    all.swap_remove(0)
}

#[test]
fn every_process_sees_the_same_devices() {
    let views = job(&[2, 1, 1], AMPLE, &never, |rank, client| {
        assert_eq!((client.process_index(), client.process_count()), (rank, 3));
        let local: Vec<u32> = client.addressable_devices().ids().map(|id| id.0).collect();
        let owners: Vec<u32> =
            client.devices().iter().map(crate::ifrt::Device::process_index).collect();
        (local, owners, client.devices().fingerprint())
    });
    let locals: Vec<_> = views.iter().map(|view| view.0.clone()).collect();
    assert_eq!(locals, [vec![0, 1], vec![2], vec![3]]);
    for view in &views {
        assert_eq!((&view.1, view.2), (&vec![0, 0, 1, 2], views[0].2));
    }
}

#[test]
fn a_launch_sums_over_all_processes() {
    let results = job(&[2, 2], AMPLE, &sums, |_, client| {
        let step = compile(client, &all_reduce_program(4)).unwrap();
        let mut value = array(client, &[1, 2, 3, 4], &replicated(client));
        for _ in 0..3 {
            value = launch(&*step, &value);
        }
        (elements(&*value).unwrap(), step.fingerprint())
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0].0, [64, 128, 192, 256]);
}

#[test]
fn a_process_holds_its_own_shards_and_says_what_it_lacks() {
    let messages = job(&[2, 1, 0], AMPLE, &never, |rank, client| {
        let array = array(client, &[10, 11, 12, 13, 14], &tiled(client.devices()));
        let expected: &[&[u32]] = match rank {
            0 => &[&[10, 11], &[12, 13]],
            1 => &[&[14]],
            _ => &[],
        };
        assert_eq!(shards(&*array), expected);
        array.ready().wait().unwrap();
        let all = array.disassemble_into_single_device_arrays(
            ArrayCopySemantics::ReuseInput,
            SingleDeviceShardSemantics::AllShards,
        );
        assert_eq!(all.unwrap_err().code(), Code::InvalidArgument);
        elements(&*array).unwrap_err().message().to_owned()
    });
    assert_eq!(
        messages[1],
        "array of ui32 [5], tiles [3] over 3 shards on devices [0, 1, 2] cannot be copied to this \
         host: it holds the shards [2], the shards [0, 1] are on other processes; read the local \
         shards with disassemble_into_single_device_arrays, or bring the others here with gather or \
         fetch_to"
    );
    assert!(messages[2].contains("it holds the shards [], the shards [0, 1, 2]"));
}

#[test]
fn processes_with_other_programs_are_named_before_anything_runs() {
    let errors = job(&[1, 1, 1], AMPLE, &never, |rank, client| {
        let mut program = all_reduce_program(3);
        if rank == 1 {
            program = program.replace("stablehlo.add", "stablehlo.maximum");
        }
        compile(client, &program).err().unwrap()
    });
    let (code, message) = the_one_message(errors);
    assert_eq!(code, Code::FailedPrecondition);
    let head = "compilation 1 on devices [0, 1, 2]: the processes compiled different programs; \
                rank 1 differs from ranks 0, 2: its line";
    assert!(message.starts_with(head), "{message}");
    assert!(
        message.contains("stablehlo.maximum") && message.contains("stablehlo.add"),
        "{message}"
    );
}

#[test]
fn a_process_that_cannot_compile_stops_the_others() {
    let errors = job(&[1, 1, 1], AMPLE, &never, |rank, client| {
        let program = if rank == 2 { "module {".to_owned() } else { all_reduce_program(3) };
        compile(client, &program).err().unwrap()
    });
    let (_, message) = the_one_message(errors);
    assert!(message.contains("rank 2 differs from ranks 0, 1: it could not compile"), "{message}");
}

#[test]
fn a_process_that_does_not_compile_is_named() {
    let others_are_through = Barrier::new(3);
    let errors = job(&[1, 1, 1], AMPLE, &never, |rank, client| {
        let error = (rank != 1).then(|| {
            let program = StableHloProgram::Text(all_reduce_program(3));
            let mut options = CompileOptions::new(client.devices().clone());
            options.agreement_timeout = Duration::from_millis(50);
            client.compiler().compile_and_load(&program, &options).wait().err().unwrap()
        });
        others_are_through.wait();
        error
    });
    let (code, message) = the_one_message(errors.into_iter().flatten().collect());
    assert_eq!(code, Code::DeadlineExceeded);
    assert!(message.contains("rank 1 did not compile within 50ms"), "{message}");
}

#[test]
fn a_process_that_does_not_launch_is_named_within_the_timeout() {
    let others_are_through = Barrier::new(3);
    let errors = job(&[1, 1, 1], Duration::from_millis(300), &sums, |rank, client| {
        let step = compile(client, &all_reduce_program(3)).unwrap();
        let value = array(client, &[1, 2, 3, 4], &replicated(client));
        let error = (rank != 1).then(|| elements(&*launch(&*step, &value)).unwrap_err());
        others_are_through.wait();
        error
    });
    let (code, message) = the_one_message(errors.into_iter().flatten().collect());
    assert_eq!(code, Code::DeadlineExceeded);
    assert!(message.starts_with("all_reduce(sum, u32, 4 elements)"), "{message}");
    assert!(message.contains("rank 1 (device 1) did not take part within 300ms"), "{message}");
}

#[test]
fn launches_in_another_order_are_told_apart() {
    let errors = job(&[1, 1], AMPLE, &sums, |rank, client| {
        let step = compile(client, &all_reduce_program(2)).unwrap();
        let value = array(client, &[1, 2, 3, 4], &replicated(client));
        let id = crate::ifrt::LaunchId(if rank == 0 { 7 } else { 8 });
        let options = ExecuteOptions { launch_id: Some(id), ..ExecuteOptions::default() };
        step.execute(&[value], &options).unwrap().status.wait().unwrap_err()
    });
    let (code, message) = the_one_message(errors);
    assert_eq!(code, Code::Aborted);
    assert!(message.contains("launch 7") && message.contains("launch 8"), "{message}");
}

#[test]
fn a_failed_process_poisons_what_needs_it_and_nothing_else() {
    let others_are_through = Barrier::new(3);
    let errors = job(&[1, 1, 1], AMPLE, &sums, |rank, client| {
        let step = compile(client, &all_reduce_program(3)).unwrap();
        let value = array(client, &[1, 2, 3, 4], &replicated(client));
        let error = if rank == 2 {
            client.world().session().unwrap().report_failure("out of disk").unwrap();
            None
        } else {
            let lost = launch(&*step, &value);
            let error = elements(&*lost).unwrap_err();
            let after = elements(&*launch(&*step, &lost)).unwrap_err();
            assert_eq!(after.message(), error.message());

            // What is wholly local goes on.
            let own = client.addressable_devices().clone();
            let program = StableHloProgram::Text(all_reduce_program(1));
            let options = CompileOptions::new(own.clone());
            let alone = client.compiler().compile_and_load(&program, &options).wait().unwrap();
            let value = array(client, &[5, 6, 7, 8], &Sharding::replicated(own).unwrap());
            assert_eq!(elements(&*launch(&*alone, &value)).unwrap(), [5, 6, 7, 8]);
            Some(error)
        };
        others_are_through.wait();
        error
    });
    let (code, message) = the_one_message(errors.into_iter().flatten().collect());
    assert_eq!(code, Code::Unavailable);
    assert!(message.ends_with("rank 2 reported: out of disk"), "{message}");
}

#[test]
fn poison_on_one_process_ends_the_launch_of_the_others_at_once() {
    let start = Instant::now();
    let messages = job(&[1, 1, 1], AMPLE, &sums, |rank, client| {
        let step = compile(client, &all_reduce_program(3)).unwrap();
        let good = array(client, &[1, 2, 3, 4], &replicated(client));
        let poison = Status::unavailable("this shard is lost");
        let bad = client.make_error_arrays(&poison, step.parameter_specs()).unwrap().remove(0);
        let output = launch(&*step, if rank == 1 { &bad } else { &good });
        let error = elements(&*output).unwrap_err();
        // The members are still in step.
        assert_eq!(elements(&*launch(&*step, &good)).unwrap(), [3, 6, 9, 12]);
        error.message().to_owned()
    });
    assert!(start.elapsed() < AMPLE);
    assert_eq!(messages[1], "this shard is lost");
    assert_eq!(messages[0], messages[2]);
    assert!(messages[0].starts_with("all_reduce(sum, u32, 4 elements) as "), "{}", messages[0]);
    let told = "#1.1 on devices 0-2: rank 1 does not take part: this shard is lost";
    assert!(messages[0].ends_with(told), "{}", messages[0]);
}

#[test]
fn a_device_that_fails_ends_the_launch_of_the_others_at_once() {
    let run = |rank: u32| -> Box<Run> {
        if rank == 1 {
            Box::new(|_, _, _| Err(Status::resource_exhausted("no memory left")))
        } else {
            sums(rank)
        }
    };
    let messages = job(&[1, 1], AMPLE, &run, |_, client| {
        let step = compile(client, &all_reduce_program(2)).unwrap();
        let value = array(client, &[1, 2, 3, 4], &replicated(client));
        elements(&*launch(&*step, &value)).unwrap_err().message().to_owned()
    });
    assert_eq!(messages[1], "launch 0 on device 1: no memory left");
    let told = "rank 1 does not take part: launch 0 on device 1: no memory left";
    assert!(messages[0].ends_with(told), "{}", messages[0]);
}

/// Two groups in one launch: rank 1 fails before it joins either. Rank 0 is in the first with it,
/// rank 3 in the second, and rank 2 only with these two.
#[test]
fn a_launch_that_fails_leaves_every_group_in_step() {
    let run = |rank: u32| -> Box<Run> {
        let runs = AtomicUsize::new(0);
        Box::new(move |_, arguments, context| {
            if rank == 1 && runs.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
                return Err(Status::resource_exhausted("no memory left"));
            }
            let pairs = sum_over(context, &arguments[0], 0, &[[0, 1], [2, 3]])?;
            Ok(vec![sum_over(context, &pairs, 1, &[[0, 2], [1, 3]])?])
        })
    };
    let start = Instant::now();
    let messages = job(&[1; 4], AMPLE * 2, &run, |rank, client| {
        let step = compile(client, &two_groups_program()).unwrap();
        let value = array(client, &[1 + rank, 2, 3, 4], &replicated(client));
        let mut messages = Vec::new();
        for _ in 0..4 {
            messages.push(elements(&*launch(&*step, &value)).unwrap_err().message().to_owned());
            assert_eq!(elements(&*launch(&*step, &value)).unwrap(), [10, 8, 12, 16]);
        }
        messages
    });
    assert!(start.elapsed() < AMPLE, "{:?}", start.elapsed());
    for round in 0..4 {
        let said: Vec<&str> = messages.iter().map(|rounds| rounds[round].as_str()).collect();
        let [zero, one, two, three] = said[..] else { panic!("{said:?}") };
        let cause = format!("launch {} on device 1: no memory left", 2 * round);
        assert_eq!(one, cause);
        let epoch = 2 * round + 1;
        let told = format!("#{epoch}.1 on devices 0-1: rank 1 does not take part: {cause}");
        assert!(zero.ends_with(&told), "{zero}");
        let told = format!("#{epoch}.1 on devices 1, 3: rank 1 does not take part: {cause}");
        assert!(three.ends_with(&told), "{three}");
        let told = format!("#{epoch}.1 on devices 0, 2: rank 0 does not take part: {zero}");
        assert!(two.ends_with(&told), "{two}");
    }
}
