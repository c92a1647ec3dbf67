//! Programs: compiled, launched, donated to, cancelled, serialized; and functions of the host.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, mpsc};

use lockstep::ifrt::{
    ArrayRef, ArraySpec, Code, CompileOptions, DType, DeviceList, ExecuteOptions, HostBuffer,
    HostBytes, HostCall, HostFunctionProgram, Layout, LoadedExecutable, Result, StableHloProgram,
    Status, UserContext,
};

use crate::fixture::{Fixture, elements, expect_elements, refused, rows_over, shape, shards};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    programs_run_on_all_shards,
    sums_go_over_all_devices,
    sums_go_over_either_axis_of_a_grid,
    summands_are_added_up_where_the_sum_is_asked_for,
    devices_make_their_parts_alone_where_they_can,
    parts_count_as_the_whole_does_in_types_that_round,
    local_devices_run_alone,
    executables_say_what_they_are,
    arguments_are_checked,
    donated_arguments_are_gone,
    poison_goes_through_programs,
    serialized_executables_run,
    damaged_executables_are_refused,
    host_functions_see_each_shard,
    host_functions_keep_their_promises,
    failures_of_host_functions_are_statuses,
    launches_are_cancelled_before_they_start,
    cancelling_what_is_over_changes_nothing,
    launches_in_another_order_are_refused,
    after_a_failure_everything_goes_on,
];

/// Each device has two numbers: adds `constant`, donates as `attributes` say.
fn add(n: usize, constant: u32, attributes: &str) -> String {
    on_each(
        n,
        attributes,
        &format!(
            "%c = stablehlo.constant dense<{constant}> : tensor<2xui32>
         %r = stablehlo.add %x, %c : tensor<2xui32>"
        ),
    )
}

/// Each device has two numbers: makes them the sums over all devices.
pub(crate) fn sum(n: usize) -> String {
    let all: Vec<String> = (0..n).map(|id| id.to_string()).collect();
    on_each(n, "", &format!(
        "%r = \"stablehlo.all_reduce\"(%x) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[{}]]> : tensor<1x{n}xi64>, use_global_device_ids}}> ({{
         ^bb0(%a: tensor<ui32>, %b: tensor<ui32>):
           %t = stablehlo.add %a, %b : tensor<ui32>
           stablehlo.return %t : tensor<ui32>
         }}) : (tensor<2xui32>) -> tensor<2xui32>",
        all.join(", ")
    ))
}

fn on_each(n: usize, attributes: &str, body: &str) -> String {
    let global = format!("tensor<{}xui32>", 2 * n);
    format!(
        "module @on_each attributes {{mhlo.num_partitions = {n} : i32, mhlo.num_replicas = 1 : i32}} {{
           sdy.mesh @mesh = <[\"x\"={n}]>
           func.func public @main(%arg0: {global} {{sdy.sharding = #sdy.sharding<@mesh, [{{\"x\"}}]>{attributes}}}) -> ({global} {{sdy.sharding = #sdy.sharding<@mesh, [{{\"x\"}}]>}}) {{
             %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{{\"x\"}}]>] out_shardings=[<@mesh, [{{\"x\"}}]>] manual_axes={{\"x\"}} (%x: tensor<2xui32>) {{
               {body}
               sdy.return %r : tensor<2xui32>
             }} : ({global}) -> {global}
             return %0 : {global}
           }}
         }}"
    )
}

pub(crate) fn compile_on(
    fixture: &Fixture,
    text: &str,
    devices: &DeviceList,
) -> Result<Arc<dyn LoadedExecutable>> {
    let program = StableHloProgram::Text(text.to_owned());
    let options = CompileOptions::new(devices.clone());
    fixture.client.compiler().compile_and_load(&program, &options).wait()
}

fn compile(fixture: &Fixture, text: &str) -> Arc<dyn LoadedExecutable> {
    compile_on(fixture, text, fixture.devices()).unwrap()
}

pub(crate) fn launch(program: &dyn LoadedExecutable, argument: &ArrayRef) -> ArrayRef {
    let arguments = [Arc::clone(argument)];
    program.execute(&arguments, &ExecuteOptions::default()).unwrap().outputs.remove(0)
}

pub(crate) fn counting_from(first: usize, count: usize) -> Vec<u32> {
    (u32::try_from(first).unwrap()..).take(count).collect()
}

fn programs_run_on_all_shards(fixture: &Fixture) {
    let n = fixture.devices().len();
    let program = compile(fixture, &add(n, 10, ""));
    let argument = fixture.counting(0, &[2 * n], &program.parameter_shardings()[0]);
    let result = program.execute(&[argument], &ExecuteOptions::default()).unwrap();
    result.status.wait().unwrap();
    assert_eq!(result.outputs[0].spec(), &program.output_specs()[0]);
    expect_elements(&*result.outputs[0], &counting_from(10, 2 * n));
    // One output is the next launch's argument, before it is there.
    let mut value = fixture.counting(0, &[2 * n], &program.parameter_shardings()[0]);
    for _ in 0..20 {
        value = launch(&*program, &value);
    }
    expect_elements(&*value, &counting_from(200, 2 * n));
    assert_eq!(program.statistics().launches, 21);
}

fn sums_go_over_all_devices(fixture: &Fixture) {
    let n = fixture.devices().len();
    let program = compile(fixture, &sum(n));
    let argument = fixture.counting(0, &[2 * n], &program.parameter_shardings()[0]);
    let even: u32 = (0..).step_by(2).take(n).sum();
    let expected = [even, even + u32::try_from(n).unwrap()].repeat(n);
    expect_elements(&*launch(&*program, &argument), &expected);
}

/// A grid of two rows; each device has one number and makes it the sum over its row or column.
fn sum_along(axis: &str, n: usize) -> String {
    let columns = n / 2;
    let members = |group: usize| -> Vec<usize> {
        match axis {
            "x" => vec![group, group + columns],
            _ => (group * columns..(group + 1) * columns).collect(),
        }
    };
    let (count, size) = if axis == "x" { (columns, 2) } else { (2, columns) };
    let groups: Vec<_> = (0..count).map(|group| format!("{:?}", members(group))).collect();
    let global = format!("tensor<{n}xui32>");
    let cut = "<@mesh, [{\"x\", \"y\"}]>";
    format!(
        "module @sum_along attributes {{mhlo.num_partitions = {n} : i32, mhlo.num_replicas = 1 : i32}} {{
           sdy.mesh @mesh = <[\"x\"=2, \"y\"={columns}]>
           func.func public @main(%arg0: {global} {{sdy.sharding = #sdy.sharding{cut}}}) -> ({global} {{sdy.sharding = #sdy.sharding{cut}}}) {{
             %0 = sdy.manual_computation(%arg0) in_shardings=[{cut}] out_shardings=[{cut}] manual_axes={{\"x\", \"y\"}} (%x: tensor<1xui32>) {{
               %r = \"stablehlo.all_reduce\"(%x) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[{}]> : tensor<{count}x{size}xi64>, use_global_device_ids}}> ({{
               ^bb0(%a: tensor<ui32>, %b: tensor<ui32>):
                 %t = stablehlo.add %a, %b : tensor<ui32>
                 stablehlo.return %t : tensor<ui32>
               }}) : (tensor<1xui32>) -> tensor<1xui32>
               sdy.return %r : tensor<1xui32>
             }} : ({global}) -> {global}
             return %0 : {global}
           }}
         }}",
        groups.join(", ")
    )
}

/// The grid in the order of the devices and transposed, so that rows and columns change places
/// between those within processes and those across them.
fn sums_go_over_either_axis_of_a_grid(fixture: &Fixture) {
    let n = fixture.devices().len();
    let columns = n / 2;
    let transposed: Vec<usize> = (0..n).map(|i| i % columns * 2 + i / columns).collect();
    for devices in [fixture.devices().clone(), fixture.pick(&transposed)] {
        for axis in ["x", "y"] {
            let program = compile_on(fixture, &sum_along(axis, n), &devices).unwrap();
            let argument = fixture.counting(1, &[n], &program.parameter_shardings()[0]);
            let sum = |i: usize| -> usize {
                let along = |j: &usize| match axis {
                    "x" => j % columns == i % columns,
                    _ => j / columns == i / columns,
                };
                (0..n).filter(along).map(|j| j + 1).sum()
            };
            let expected: Vec<u32> = (0..n).map(|i| u32::try_from(sum(i)).unwrap()).collect();
            expect_elements(&*launch(&*program, &argument), &expected);
        }
    }
}

/// `main`, from `[n]` with one sharding to `[n]` with another, over a mesh of `x` by `y`.
fn respread(n: usize, from: &str, to: &str, body: &str) -> String {
    let columns = n / 2;
    format!(
        "module @respread attributes {{mhlo.num_partitions = {n} : i32, mhlo.num_replicas = 1 : i32}} {{
           sdy.mesh @mesh = <[\"x\"=2, \"y\"={columns}]>
           func.func public @main(%arg0: tensor<{n}xui32> {{sdy.sharding = #sdy.sharding<@mesh, {from}>}}) -> (tensor<{n}xui32> {{sdy.sharding = #sdy.sharding<@mesh, {to}>}}) {{
             {body}
             return %0 : tensor<{n}xui32>
           }}
         }}"
    )
}

/// An array that is summands on its devices, made in both ways and added up in both ways.
fn summands_are_added_up_where_the_sum_is_asked_for(fixture: &Fixture) {
    let n = fixture.devices().len();
    let (whole, cut, summands) = ("[{}]", "[{\"y\"}]", "[{\"y\"}], unreduced={\"x\"}");
    let columns = n / 2;
    let manual = |from: &str, to: &str| {
        format!(
            "%0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, {from}>] out_shardings=[<@mesh, {to}>] manual_axes={{\"x\", \"y\"}} (%x: tensor<2xui32>) {{
               sdy.return %x : tensor<2xui32>
             }} : (tensor<{n}xui32>) -> tensor<{n}xui32>"
        )
    };
    let negated = format!("%0 = stablehlo.negate %arg0 : tensor<{n}xui32>");
    let compiled =
        |from: &str, to: &str, body: &str| compile(fixture, &respread(n, from, to, body));
    // Every device of a column says its part is a summand, so the sum is twice the array.
    let twice = compiled(cut, summands, &manual(cut, summands));
    let argument = fixture.counting(1, &[n], &twice.parameter_shardings()[0]);
    let twice = launch(&*twice, &argument);
    let summand = twice.spec().sharding.shard_shape(&shape(&[n])).unwrap();
    assert_eq!(summand, shape(&[n / columns]));
    for part in shards(&*twice) {
        assert_eq!(part[1], part[0] + 1, "{part:?}");
    }
    refused(elements(&*twice));
    let doubled: Vec<u32> = counting_from(1, n).into_iter().map(|i| 2 * i).collect();
    let minus = |numbers: &[u32]| numbers.iter().map(|i| i.wrapping_neg()).collect::<Vec<_>>();
    let sum = launch(&*compiled(summands, whole, &negated), &twice);
    expect_elements(&*sum, &minus(&doubled));
    // What is spread into summands by the runtime is their sum, whatever each of them is.
    let again = launch(&*compiled(whole, summands, &negated), &sum);
    let again = launch(&*compiled(summands, summands, &negated), &again);
    expect_elements(&*launch(&*compiled(summands, cut, &negated), &again), &doubled);
}

fn devices_make_their_parts_alone_where_they_can(fixture: &Fixture) {
    let n = fixture.devices().len();
    let tens: Vec<u32> = (0..).step_by(10).take(n).collect();
    let body = format!(
        "%c = stablehlo.constant dense<7> : tensor<{n}xui32>
         %t = stablehlo.constant dense<{tens:?}> : tensor<{n}xui32>
         %i = stablehlo.iota dim = 0 : tensor<{n}xui32>
         %1 = stablehlo.multiply %arg0, %c : tensor<{n}xui32>
         %2 = stablehlo.multiply %i, %i : tensor<{n}xui32>
         %3 = stablehlo.add %1, %2 : tensor<{n}xui32>
         %0 = stablehlo.add %3, %t : tensor<{n}xui32>"
    );
    let (cut, whole) = ("[{\"y\", \"x\"}]", "[{}]");
    for from in [cut, whole] {
        let program = compile(fixture, &respread(n, from, cut, &body));
        let text = program.program_text().unwrap();
        assert!(!text.contains("stablehlo.all_gather"), "{text}");
        let argument = fixture.counting(3, &[n], &program.parameter_shardings()[0]);
        let numbers = counting_from(0, n).into_iter();
        let expected: Vec<u32> = numbers.map(|i| 7 * (i + 3) + i * i + 10 * i).collect();
        expect_elements(&*launch(&*program, &argument), &expected);
    }
}

/// In 8 bits of fraction most numbers from 256 on are rounded, starts of parts among them.
fn parts_count_as_the_whole_does_in_types_that_round(fixture: &Fixture) {
    let n = fixture.devices().len();
    let (m, cut) = (523 * n, "[{\"x\"}]");
    let text = format!(
        "module @count attributes {{mhlo.num_partitions = {n} : i32, mhlo.num_replicas = 1 : i32}} {{
           sdy.mesh @mesh = <[\"x\"={n}]>
           func.func public @main(%arg0: tensor<{n}xui32> {{sdy.sharding = #sdy.sharding<@mesh, {cut}>}}) -> (tensor<{m}xui32> {{sdy.sharding = #sdy.sharding<@mesh, {cut}>}}) {{
             %i = stablehlo.iota dim = 0 : tensor<{m}xbf16>
             %0 = stablehlo.convert %i : (tensor<{m}xbf16>) -> tensor<{m}xui32>
             return %0 : tensor<{m}xui32>
           }}
         }}"
    );
    let program = compile(fixture, &text);
    let argument = fixture.counting(0, &[n], &program.parameter_shardings()[0]);
    // To the nearest of 8 bits, and of two to the even one.
    let rounded = counting_from(0, m).into_iter().map(|i| {
        let unit = 1 << (u32::BITS - i.leading_zeros()).saturating_sub(8);
        let (below, rest) = (i / unit, i % unit);
        let up = 2 * rest > unit || (2 * rest == unit && below % 2 == 1);
        (below + u32::from(up)) * unit
    });
    expect_elements(&*launch(&*program, &argument), &rounded.collect::<Vec<_>>());
}

fn local_devices_run_alone(fixture: &Fixture) {
    let own = fixture.client.addressable_devices().clone();
    let program = compile_on(fixture, &sum(own.len()), &own).unwrap();
    let argument = fixture.counting(1, &[2 * own.len()], &rows_over(own.clone(), 1));
    let sums = elements(&*launch(&*program, &argument)).unwrap();
    let odd: u32 = (1..).step_by(2).take(own.len()).sum();
    assert_eq!(sums, [odd, odd + u32::try_from(own.len()).unwrap()].repeat(own.len()));
}

fn executables_say_what_they_are(fixture: &Fixture) {
    let n = fixture.devices().len();
    let program = compile(fixture, &add(n, 1, ", jax.buffer_donor = true"));
    assert_eq!(program.name(), "on_each");
    assert_eq!(program.devices(), fixture.devices());
    assert_eq!(program.donatable_input_indices(), [0]);
    assert_eq!(program.parameter_layouts(), [Layout::row_major(1)]);
    assert_eq!(program.output_layouts(), [Layout::row_major(1)]);
    assert_eq!(program.output_shardings(), [fixture.rows(1)]);
    let memory = program.memory_statistics();
    assert_eq!((memory.argument_bytes, memory.output_bytes, memory.donated_bytes), (8, 8, 8));
    let text = program.program_text().unwrap();
    assert!(text.contains("tensor<2xui32>"), "{text}");
    assert!(!text.contains(&format!("tensor<{}xui32>", 2 * n)) || n == 1, "{text}");
    let same = compile(fixture, &add(n, 1, ", jax.buffer_donor = true"));
    let other = compile(fixture, &add(n, 2, ", jax.buffer_donor = true"));
    assert_eq!(program.fingerprint(), same.fingerprint());
    assert_ne!(program.fingerprint(), other.fingerprint());
}

fn arguments_are_checked(fixture: &Fixture) {
    let n = fixture.devices().len();
    let program = compile(fixture, &add(n, 1, ""));
    let run = |arguments: &[ArrayRef]| program.execute(arguments, &ExecuteOptions::default());
    let good = fixture.counting(0, &[2 * n], &fixture.rows(1));
    refused(run(&[]));
    refused(run(&[good.clone(), good.clone()]));
    refused(run(&[fixture.counting(0, &[2 * n + 1], &fixture.rows(1))]));
    if n > 1 {
        refused(run(&[fixture.counting(0, &[2 * n], &fixture.replicated())]));
        refused(run(&[fixture.counting(0, &[2 * n], &rows_over(fixture.reversed(), 1))]));
    }
    let elsewhere = fixture.client.copy_arrays(
        std::slice::from_ref(&good),
        None,
        Some(&lockstep::ifrt::MemoryKind::PINNED_HOST),
        crate::fixture::COPY,
    );
    refused(run(&elsewhere.unwrap()));
    let none = BTreeSet::from([1]);
    let options = ExecuteOptions { non_donatable_input_indices: none, ..ExecuteOptions::default() };
    refused(program.execute(std::slice::from_ref(&good), &options));
    good.delete().wait().unwrap();
    refused(run(&[good]));
}

fn donated_arguments_are_gone(fixture: &Fixture) {
    let n = fixture.devices().len();
    let program = compile(fixture, &add(n, 1, ", jax.buffer_donor = true"));
    let argument = fixture.counting(0, &[2 * n], &fixture.rows(1));
    let kept = BTreeSet::from([0]);
    let keep = ExecuteOptions { non_donatable_input_indices: kept, ..ExecuteOptions::default() };
    let one = std::slice::from_ref(&argument);
    let first = program.execute(one, &keep).unwrap().outputs.remove(0);
    assert!(!argument.is_deleted());
    expect_elements(&*argument, &counting_from(0, 2 * n));
    // A copy that shares its memory is not written to.
    let copy =
        fixture.client.copy_arrays(one, None, None, crate::fixture::REUSE).unwrap().remove(0);
    let second = launch(&*program, &argument);
    assert!(argument.is_deleted());
    expect_elements(&*copy, &counting_from(0, 2 * n));
    for output in [first, second] {
        expect_elements(&*output, &counting_from(1, 2 * n));
    }
    refused(program.execute(one, &ExecuteOptions::default()));
}

fn poison_goes_through_programs(fixture: &Fixture) {
    let n = fixture.devices().len();
    let program = compile(fixture, &add(n, 1, ""));
    let spec = program.parameter_specs()[0].clone();
    let bad = fixture.client.make_error_arrays(&Status::data_loss("gone"), &[spec]).unwrap();
    let result = program.execute(&bad, &ExecuteOptions::default()).unwrap();
    assert_eq!(result.status.wait().unwrap_err().code(), Code::DataLoss);
    let next = launch(&*program, &result.outputs[0]);
    let status = next.ready().wait().unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::DataLoss, "gone"));
    let good = fixture.counting(0, &[2 * n], &fixture.rows(1));
    expect_elements(&*launch(&*program, &good), &counting_from(1, 2 * n));
}

fn serialized_executables_run(fixture: &Fixture) {
    let n = fixture.devices().len();
    let program = compile(fixture, &sum(n));
    let bytes = program.serialize().unwrap();
    let compiler = fixture.client.compiler();
    let again = compiler.deserialize_and_load(&bytes, None).wait().unwrap();
    assert_eq!(again.fingerprint(), program.fingerprint());
    assert_eq!(again.parameter_specs(), program.parameter_specs());
    let argument = fixture.counting(0, &[2 * n], &fixture.rows(1));
    let (one, two) = (launch(&*program, &argument), launch(&*again, &argument));
    assert_eq!(crate::fixture::shards(&*one), crate::fixture::shards(&*two));
    let turned = compiler.deserialize_and_load(&bytes, Some(&fixture.reversed())).wait().unwrap();
    assert_eq!(*turned.devices(), fixture.reversed());
    let argument = fixture.counting(0, &[2 * n], &rows_over(fixture.reversed(), 1));
    launch(&*turned, &argument).ready().wait().unwrap();
}

fn damaged_executables_are_refused(fixture: &Fixture) {
    let n = fixture.devices().len();
    let bytes = compile(fixture, &add(n, 1, "")).serialize().unwrap();
    let compiler = fixture.client.compiler();
    let code =
        |bytes: &[u8]| compiler.deserialize_and_load(bytes, None).wait().err().unwrap().code();
    assert_eq!(code(b"no executable"), Code::InvalidArgument);
    assert_ne!(code(&bytes[..bytes.len() / 2]), Code::Internal);
    let place = bytes.windows(7).position(|window| window == b"on_each").unwrap();
    let mut damaged = bytes.clone();
    damaged[place] = b'O';
    assert_eq!(code(&damaged), Code::DataLoss);
}

/// A host function from rows of `length` numbers over all devices to the same.
fn host_function(
    fixture: &Fixture,
    length: usize,
    function: impl Fn(&HostCall) -> Result<Vec<HostBuffer<'static>>> + Send + Sync + 'static,
) -> Arc<dyn LoadedExecutable> {
    let spec = ArraySpec { dtype: DType::U32, shape: shape(&[length]), sharding: fixture.rows(1) };
    let program = HostFunctionProgram {
        name: "on the host".to_owned(),
        parameters: vec![spec.clone()],
        outputs: vec![spec],
        function: Arc::new(function),
    };
    let options = CompileOptions::new(fixture.devices().clone());
    fixture.client.compiler().compile_and_load(&program, &options).wait().unwrap()
}

fn buffer(numbers: &[u32]) -> HostBuffer<'static> {
    let bytes = HostBytes::Shared(Arc::new(bytemuck::cast_slice::<u32, u8>(numbers).to_vec()));
    HostBuffer::dense(bytes, DType::U32, shape(&[numbers.len()])).unwrap()
}

fn host_functions_see_each_shard(fixture: &Fixture) {
    let n = fixture.devices().len();
    let length = 3 * n - 1;
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let calls = Arc::clone(&seen);
    let program = host_function(fixture, length, move |call| {
        calls.lock().unwrap().insert((call.shard, call.device.id()));
        let numbers: Vec<u32> = call.arguments[0].to_vec()?;
        Ok(vec![buffer(&numbers.iter().map(|number| 2 * number + 1).collect::<Vec<_>>())])
    });
    let argument = fixture.counting(0, &[length], &fixture.rows(1));
    let doubled = launch(&*program, &argument);
    let expected: Vec<u32> = (0..).take(length).map(|number: u32| 2 * number + 1).collect();
    expect_elements(&*doubled, &expected);
    let places = fixture.devices().addressable_positions().into_iter();
    let expected = places.map(|place| (place, fixture.devices().get(place).unwrap().id()));
    assert_eq!(*seen.lock().unwrap(), expected.collect::<BTreeSet<_>>());
    assert_eq!(program.serialize().unwrap_err().code(), Code::Unimplemented);
    assert_eq!(program.program_text().unwrap_err().code(), Code::Unimplemented);
}

fn host_functions_keep_their_promises(fixture: &Fixture) {
    let n = fixture.devices().len();
    let argument = fixture.counting(0, &[2 * n], &fixture.rows(1));
    type Outputs = fn() -> Vec<HostBuffer<'static>>;
    let wrong: [Outputs; 3] = [Vec::new, || vec![buffer(&[1])], || vec![buffer(&[1, 2]); 2]];
    for wrong in wrong {
        let program = host_function(fixture, 2 * n, move |_| Ok(wrong()));
        let status = launch(&*program, &argument).ready().wait().unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    }
}

fn failures_of_host_functions_are_statuses(fixture: &Fixture) {
    let n = fixture.devices().len();
    let argument = fixture.counting(0, &[2 * n], &fixture.rows(1));
    let program = host_function(fixture, 2 * n, |_| Err(Status::not_found("no such file")));
    let context = UserContext::new("the line of the launch");
    let failed = {
        let _scope = context.enter();
        launch(&*program, &argument)
    };
    let status = failed.ready().wait().unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().ends_with("no such file"), "{status}");
    assert_eq!(status.user_context(), Some(&context));
}

fn launches_are_cancelled_before_they_start(fixture: &Fixture) {
    let n = fixture.devices().len();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let slow = host_function(fixture, 2 * n, move |call| {
        // Returns once the sender is dropped.
        let _ = released.lock().unwrap().recv();
        Ok(vec![buffer(&call.arguments[0].to_vec()?)])
    });
    let own = fixture.client.addressable_devices().clone();
    let local = compile_on(fixture, &add(own.len(), 1, ""), &own).unwrap();
    let argument = fixture.counting(0, &[2 * n], &fixture.rows(1));
    let running = launch(&*slow, &argument);
    let argument = fixture.counting(0, &[2 * own.len()], &rows_over(own.clone(), 1));
    let waiting =
        local.execute(std::slice::from_ref(&argument), &ExecuteOptions::default()).unwrap();
    waiting.cancellation.cancel(Status::aborted("changed my mind"));
    drop(release);
    let status = waiting.status.wait().unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Aborted, "changed my mind"));
    assert_eq!(waiting.outputs[0].ready().wait().unwrap_err().code(), Code::Aborted);
    running.ready().wait().unwrap();
    let numbers = elements(&*launch(&*local, &argument)).unwrap();
    assert_eq!(numbers, counting_from(1, 2 * own.len()));
}

fn cancelling_what_is_over_changes_nothing(fixture: &Fixture) {
    let n = fixture.devices().len();
    let program = compile(fixture, &add(n, 1, ""));
    let argument = fixture.counting(0, &[2 * n], &fixture.rows(1));
    let result = program.execute(&[argument], &ExecuteOptions::default()).unwrap();
    result.status.wait().unwrap();
    result.cancellation.cancel(Status::aborted("too late"));
    expect_elements(&*result.outputs[0], &counting_from(1, 2 * n));
}

fn launches_in_another_order_are_refused(fixture: &Fixture) {
    if fixture.is_alone() {
        return;
    }
    // They have no collective at all, and are launched in another order by process 0.
    let n = fixture.devices().len();
    let programs = [1, 2].map(|constant| compile(fixture, &add(n, constant, "")));
    let argument = fixture.counting(0, &[2 * n], &fixture.rows(1));
    let first = usize::from(fixture.client.process_index() == 0);
    for program in [&programs[first], &programs[1 - first]] {
        let status = launch(&**program, &argument).ready().wait().unwrap_err();
        assert_eq!(status.code(), Code::Aborted, "{status}");
        for program in &programs {
            let named = format!("{:016x}", program.fingerprint());
            assert!(status.message().contains(&named), "{status}");
        }
    }
    // Both have been launched once everywhere: all are in step again.
    for (program, constant) in programs.iter().zip([1, 2]) {
        let output = launch(&**program, &argument);
        expect_elements(&*output, &counting_from(constant, 2 * n));
    }
}

fn after_a_failure_everything_goes_on(fixture: &Fixture) {
    let n = fixture.devices().len();
    let program = compile(fixture, &sum(n));
    let argument = fixture.counting(0, &[2 * n], &fixture.rows(1));
    // The last process comes with poison, which all of them hear of.
    let is_last = fixture.client.process_index() + 1 == fixture.client.process_count();
    let bad = if is_last {
        let status = Status::data_loss("the disk is gone");
        fixture.client.make_error_arrays(&status, &[argument.spec().clone()]).unwrap().remove(0)
    } else {
        argument.clone()
    };
    for _ in 0..3 {
        let status = launch(&*program, &bad).ready().wait().unwrap_err();
        assert!(status.message().contains("the disk is gone"), "{status}");
        launch(&*program, &argument).ready().wait().unwrap();
    }
    let moved = fixture.client.resharded(&argument, fixture.replicated()).unwrap();
    assert_eq!(elements(&*moved).unwrap(), counting_from(0, 2 * n));
}
