//! Launches: results, costs, order, poison and donation.

use super::*;
use crate::ifrt::HostFunctionProgram;

const DOUBLE: &str = "module @double {
    func.func public @main(%arg0: tensor<4xui32>) -> tensor<4xui32> {
        %0 = stablehlo.add %arg0, %arg0 : tensor<4xui32>
        return %0 : tensor<4xui32>
    }
}";

#[test]
fn a_launch_sums_over_devices_and_counts_its_costs() {
    let client = client(4, |device, arguments, context| {
        assert_eq!(context.partition_id() as usize, device.0);
        Ok(vec![sum(context, &arguments[0])?])
    });
    let step = compile(&client, &all_reduce_program(4)).unwrap();
    assert_eq!((step.name(), step.num_devices()), ("step", 4));
    let mut value = array(&client, &[1, 2, 3, 4], &replicated(&client));
    for _ in 0..3 {
        let result = step.execute(&[value], &ExecuteOptions::default()).unwrap();
        result.status.wait().unwrap();
        value = result.outputs.into_iter().next().unwrap();
    }
    assert_eq!(shards(&*value), [[64, 128, 192, 256]; 4]);
    let costs = step.statistics();
    assert_eq!(costs.launches, 3);
    assert!(!costs.communication_time.is_zero());
}

#[test]
fn arguments_must_be_what_the_program_takes() {
    let client = idle(2);
    let map = compile(&client, &map_program(2, &[""])).unwrap();
    let refuse = |arguments: &[ArrayRef]| {
        let error = map.execute(arguments, &ExecuteOptions::default()).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        error.message().to_owned()
    };
    let good = array(&client, &[1, 2, 3, 4], &replicated(&client));
    assert_eq!(refuse(&[]), "map takes 1 arguments, got 0");
    let short = array(&client, &[1, 2], &replicated(&client));
    assert_eq!(refuse(&[short]), "argument 0 of map: the shape is [2], must be [4]");
    let cut = array(&client, &[1, 2, 3, 4], &tiled(client.devices()));
    assert_eq!(
        refuse(&[cut]),
        "argument 0 of map: the sharding is tiles [2] over 2 shards on devices [0, 1], must be \
         replicated over 2 shards on devices [0, 1]"
    );
    let float = HostBuffer::from_slice(&[1.0_f32; 4], DType::F32, shape(&[4])).unwrap();
    let float =
        client.make_array_from_host_buffer(&float, &replicated(&client), DURING_CALL).unwrap();
    assert_eq!(refuse(&[float]), "argument 0 of map: the element type is f32, must be ui32");
    good.delete().wait().unwrap();
    assert_eq!(refuse(&[good]), "argument 0 of map is deleted or was donated");
}

#[test]
fn device_lists_must_fit_the_program() {
    let client = idle(3);
    let error = compile(&client, &map_program(2, &[""])).err().unwrap();
    assert_eq!(
        error.message(),
        "map: the program is for 2 partitions, the device list devices [0, 1, 2] has 3 devices"
    );
    let error = compile(&client, "module {").err().unwrap();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("program:1:"), "{error}");
}

#[test]
fn poison_passes_through_with_its_first_cause_and_runs_nothing() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let client = client(2, move |_, arguments, _| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(arguments)
    });
    let map = compile(&client, &map_program(2, &[""])).unwrap();
    let cause = Status::new(Code::DataLoss, "the first cause");
    let mut value =
        client.make_error_arrays(&cause, &map.parameter_specs()[..1]).unwrap().remove(0);
    for _ in 0..3 {
        let result = map.execute(&[value], &ExecuteOptions::default()).unwrap();
        assert_eq!(result.status.wait().unwrap_err().message(), "the first cause");
        value = result.outputs.into_iter().next().unwrap();
    }
    let error = elements(&*value).unwrap_err();
    assert_eq!((error.code(), error.message()), (Code::DataLoss, "the first cause"));
    assert_eq!(client.ready(&[&*value]).wait().unwrap_err().message(), "the first cause");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[test]
fn a_device_that_fails_ends_the_launch_on_all() {
    // Device 1 never joins the collective that the others are in.
    let client = client(3, |device, arguments, context| {
        if device.0 == 1 {
            return Err(Status::resource_exhausted("no memory left"));
        }
        Ok(vec![sum(context, &arguments[0])?])
    });
    let step = compile(&client, &all_reduce_program(3)).unwrap();
    let value = array(&client, &[1, 2, 3, 4], &replicated(&client));
    let result = step.execute(&[value], &ExecuteOptions::default()).unwrap();
    let error = result.status.wait().unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted, "{error:?}");
    assert_eq!(error.message(), "launch 0 on device 1: no memory left");
    let parts = result.outputs[0]
        .disassemble_into_single_device_arrays(
            ArrayCopySemantics::ReuseInput,
            SingleDeviceShardSemantics::AddressableShards,
        )
        .unwrap();
    for part in parts {
        assert_eq!(elements(&*part).unwrap_err().message(), error.message());
    }
}

#[test]
fn a_poisoned_shard_ends_the_collective_of_the_others_and_the_next_launch_works() {
    let client = client(2, |_, arguments, context| Ok(vec![sum(context, &arguments[0])?]));
    let step = compile(&client, &all_reduce_program(2)).unwrap();
    let spec = &step.parameter_specs()[0];
    let single = |id| {
        let devices = client.make_device_list(&[DeviceId(id)]).unwrap();
        ArraySpec { sharding: Sharding::single_device(devices).unwrap(), ..spec.clone() }
    };
    let good = array(&client, &[1, 2, 3, 4], &single(0).sharding);
    let poison = Status::unavailable("a shard is lost");
    let bad = client.make_error_arrays(&poison, &[single(1)]).unwrap().remove(0);
    let half = client
        .assemble_array_from_single_device_arrays(
            spec,
            &[good, bad],
            ArrayCopySemantics::ReuseInput,
            SingleDeviceShardSemantics::AddressableShards,
        )
        .unwrap();
    for _ in 0..3 {
        let result = step.execute(&[Arc::clone(&half)], &ExecuteOptions::default()).unwrap();
        assert_eq!(result.status.wait().unwrap_err().message(), "a shard is lost");
        let value = array(&client, &[1, 2, 3, 4], &replicated(&client));
        let result = step.execute(&[value], &ExecuteOptions::default()).unwrap();
        assert_eq!(elements(&*result.outputs[0]).unwrap(), [2, 4, 6, 8]);
    }
}

#[test]
fn donated_inputs_are_deleted_and_handed_over_alone() {
    let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
    let memories: Arc<Mutex<Vec<Weak<FakeMemory>>>> = Arc::default();
    let (counts, registry) = (Arc::clone(&seen), Arc::clone(&memories));
    let client = client(1, move |_, _arguments, _| {
        let mut registry = registry.lock().unwrap();
        counts.lock().unwrap().extend(registry.iter().map(Weak::strong_count));
        let memory = Arc::new(FakeMemory(vec![9; 16]));
        registry.clear();
        registry.push(Arc::downgrade(&memory));
        Ok(vec![Buffer::new(memory)])
    });
    let map = compile(&client, &map_program(1, &[" {jax.buffer_donor = true}", ""])).unwrap();
    assert_eq!(map.donatable_input_indices(), [0]);
    let other = array(&client, &[1, 2, 3, 4], &replicated(&client));
    let mut value = array(&client, &[5, 6, 7, 8], &replicated(&client));
    for _ in 0..3 {
        let before = Arc::clone(&value);
        let arguments = [value, Arc::clone(&other)];
        value = map.execute(&arguments, &ExecuteOptions::default()).unwrap().outputs.remove(0);
        assert!(before.is_deleted() && !other.is_deleted());
    }
    value.ready().wait().unwrap();
    // The first launch saw no output of a launch before it; the program alone held the others.
    assert_eq!(*seen.lock().unwrap(), [1, 1]);
}

#[test]
fn what_is_donated_may_not_be_passed_twice_and_may_be_kept() {
    let client = idle(1);
    let map = compile(&client, &map_program(1, &[" {jax.buffer_donor = true}", ""])).unwrap();
    let value = array(&client, &[1, 2, 3, 4], &replicated(&client));
    let twice = [Arc::clone(&value), Arc::clone(&value)];
    let error = map.execute(&twice, &ExecuteOptions::default()).unwrap_err();
    assert!(error.message().contains("arguments 0 and 1 of map are one array"), "{error}");
    assert!(!value.is_deleted());
    let kept =
        ExecuteOptions { non_donatable_input_indices: [0].into(), ..ExecuteOptions::default() };
    map.execute(&twice, &kept).unwrap().status.wait().unwrap();
    assert!(!value.is_deleted());
    let beyond =
        ExecuteOptions { non_donatable_input_indices: [2].into(), ..ExecuteOptions::default() };
    assert_eq!(map.execute(&twice, &beyond).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn a_backend_that_panics_fails_its_launch_only() {
    let calls = AtomicUsize::new(0);
    let client = client(1, move |_, arguments, _| {
        assert!(calls.fetch_add(1, Ordering::SeqCst) > 0, "on purpose");
        Ok(arguments)
    });
    let map = compile(&client, &map_program(1, &[""])).unwrap();
    let value = array(&client, &[1, 2, 3, 4], &replicated(&client));
    let run = || map.execute(&[Arc::clone(&value)], &ExecuteOptions::default()).unwrap();
    assert_eq!(run().status.wait().unwrap_err().code(), Code::Internal);
    assert_eq!(elements(&*run().outputs[0]).unwrap(), [1, 2, 3, 4]);
}

#[test]
fn launches_from_many_threads_reach_all_devices_in_one_order() {
    let client = client(4, |_, arguments, context| Ok(vec![sum(context, &arguments[0])?]));
    let step = compile(&client, &all_reduce_program(4)).unwrap();
    std::thread::scope(|scope| {
        for thread in 1..=4 {
            let (client, step) = (&client, &step);
            scope.spawn(move || {
                for _ in 0..20 {
                    let value = array(client, &[thread, 0, 1, 2], &replicated(client));
                    let result = step.execute(&[value], &ExecuteOptions::default()).unwrap();
                    assert_eq!(elements(&*result.outputs[0]).unwrap(), [4 * thread, 0, 4, 8]);
                }
            });
        }
    });
}

#[test]
fn dropping_the_client_finishes_its_launches() {
    let client = client(2, |_, arguments, context| Ok(vec![sum(context, &arguments[0])?]));
    let step = compile(&client, &all_reduce_program(2)).unwrap();
    let value = array(&client, &[1, 2, 3, 4], &replicated(&client));
    let results: Vec<_> = (0..50)
        .map(|_| step.execute(&[Arc::clone(&value)], &ExecuteOptions::default()).unwrap())
        .collect();
    drop((client, step));
    for result in results {
        assert!(result.status.is_ready());
        assert_eq!(elements(&*result.outputs[0]).unwrap(), [2, 4, 6, 8]);
    }
}

#[test]
fn what_is_brief_is_done_when_the_call_returns_unless_it_has_to_wait() {
    let client = Client::solo(1).unwrap();
    let sharding = replicated(&client);
    let spec = ArraySpec { dtype: DType::U32, shape: shape(&[4]), sharding: sharding.clone() };
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let wait = HostFunctionProgram {
        name: "wait".to_owned(),
        parameters: vec![spec.clone()],
        outputs: vec![spec],
        function: Arc::new(move |call| {
            gate.lock().unwrap().recv().unwrap();
            Ok(call.arguments.clone())
        }),
    };
    let options = CompileOptions::new(client.devices().clone());
    let wait = client.compiler().compile_and_load(&wait, &options).wait().unwrap();
    let double = compile(&client, DOUBLE).unwrap();
    let launch = |executable: &Arc<dyn LoadedExecutable>, argument: &ArrayRef| {
        executable.execute(&[Arc::clone(argument)], &ExecuteOptions::default()).unwrap()
    };

    let value = array(&client, &[1, 2, 3, 4], &sharding);
    for _ in 0..100 {
        let prompt = launch(&double, &value);
        assert!(prompt.status.is_ready());
        assert_eq!(elements(&*prompt.outputs[0]).unwrap(), [2, 4, 6, 8]);
    }
    let held = launch(&wait, &value).outputs.remove(0);
    // Behind a launch that is not over, of its value and of one that is there.
    let [waits, too] = [&held, &value].map(|value| launch(&double, value));
    assert!(!waits.status.is_ready() && !too.status.is_ready());
    open.send(()).unwrap();
    for launched in [waits, too] {
        assert_eq!(elements(&*launched.outputs[0]).unwrap(), [2, 4, 6, 8]);
        launched.status.wait().unwrap();
    }
}

#[test]
fn single_device_and_replicated_over_one_are_one_sharding() {
    let client = idle(1);
    let map = compile(&client, &map_program(1, &[""])).unwrap();
    let spec = ShardingSpec::SingleDevice;
    let sharding = Sharding::new(spec, client.devices().clone(), MemoryKind::DEVICE).unwrap();
    let value = array(&client, &[1, 2, 3, 4], &sharding);
    let result = map.execute(&[value], &ExecuteOptions::default()).unwrap();
    assert_eq!(elements(&*result.outputs[0]).unwrap(), [1, 2, 3, 4]);
}
