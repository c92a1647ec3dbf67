//! Programs: compiled from text, launched, donated to, and refused.

use super::*;

/// A compiled program, destroyed with this.
struct Program(*mut c_void);

impl Program {
    fn compile(client: &Client, partitions: u8, text: &str) -> Result<Self, (u32, String)> {
        let format = "mlir";
        let program = ffi::PJRT_Program {
            code: text.as_ptr().cast_mut().cast(),
            code_size: text.len(),
            format: format.as_ptr().cast_mut().cast(),
            format_size: format.len(),
            ..new()
        };
        // executable_build_options { num_replicas: 1, num_partitions }
        Self::compile_with(client, &[0x1a, 0x04, 0x20, 0x01, 0x28, partitions], &program)
    }

    fn compile_with(
        client: &Client,
        options: &[u8],
        program: &ffi::PJRT_Program,
    ) -> Result<Self, (u32, String)> {
        let mut args = ffi::PJRT_Client_Compile_Args {
            client: client.client,
            program: std::ptr::from_ref(program).cast_mut().cast(),
            compile_options: options.as_ptr().cast_mut().cast(),
            compile_options_size: options.len(),
            ..new()
        };
        call(api().PJRT_Client_Compile, &mut args)?;
        Ok(Self(args.executable))
    }

    /// The executable apart from its devices, destroyed by [`destroy`].
    fn unloaded(&self) -> *mut c_void {
        let mut args =
            ffi::PJRT_LoadedExecutable_GetExecutable_Args { loaded_executable: self.0, ..new() };
        call(api().PJRT_LoadedExecutable_GetExecutable, &mut args).unwrap();
        args.executable
    }

    /// Launches it with the buffers of each device; its only output on each.
    fn execute(&self, arguments: &[Vec<*mut c_void>]) -> Result<Vec<*mut c_void>, (u32, String)> {
        let options = new::<ffi::PJRT_ExecuteOptions>();
        let lists: Vec<_> = arguments.iter().map(Vec::as_ptr).collect();
        let mut outputs = vec![null_mut::<c_void>(); arguments.len()];
        let output_lists: Vec<*mut *mut c_void> = outputs.iter_mut().map(|o| &raw mut *o).collect();
        let mut events = vec![null_mut::<c_void>(); arguments.len()];
        let mut args = ffi::PJRT_LoadedExecutable_Execute_Args {
            executable: self.0,
            options: (&raw const options).cast_mut().cast(),
            argument_lists: lists.as_ptr().cast_mut().cast(),
            num_devices: arguments.len(),
            num_args: arguments[0].len(),
            output_lists: output_lists.as_ptr().cast_mut().cast(),
            device_complete_events: events.as_mut_ptr().cast(),
            ..new()
        };
        call(api().PJRT_LoadedExecutable_Execute, &mut args)?;
        for event in events {
            await_event(event)?;
        }
        Ok(outputs)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let mut args = ffi::PJRT_LoadedExecutable_Destroy_Args { executable: self.0, ..new() };
        call(api().PJRT_LoadedExecutable_Destroy, &mut args).unwrap();
    }
}

const ADD: &str = "module @add {
  func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %a, %b : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}";

#[test]
fn a_donated_buffer_is_gone_and_the_other_stays() {
    let client = Client::new(2);
    let program = Program::compile(&client, 1, ADD).unwrap();
    let (a, b) = (client.buffer(0, &[2], &[1.0, 2.0]), client.buffer(0, &[2], &[10.0, 20.0]));
    let outputs = program.execute(&[vec![a, b]]).unwrap();
    assert_eq!(numbers(outputs[0]).unwrap(), [11.0, 22.0]);
    numbers(a).unwrap_err();
    assert_eq!(numbers(b).unwrap(), [10.0, 20.0]);
    let (code, message) = program.execute(&[vec![a, b]]).unwrap_err();
    assert_eq!((code, message.as_str()), (3, "argument 0 of add is deleted or was donated"));
    let (code, message) = program.execute(&[vec![b, b]]).unwrap_err();
    assert_eq!(code, 3);
    assert!(message.contains("arguments 0 and 1 of add are one array"), "{message}");
    assert_eq!(numbers(b).unwrap(), [10.0, 20.0]);
    let (code, message) = program.execute(&[vec![b]]).unwrap_err();
    assert_eq!((code, message.as_str()), (3, "add takes 2 arguments, got 1"));
    let (code, message) = program.execute(&[vec![b, b], vec![b, b]]).unwrap_err();
    assert_eq!(code, 3);
    assert!(message.contains("runs on 1 devices of this process"), "{message}");
}

const SUM: &str = r#"module @sum attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, jax.buffer_donor = true}) -> tensor<2xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%b: tensor<2xf32>) {
      %1 = "stablehlo.all_reduce"(%b) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %2 = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %2 : tensor<f32>
      }) : (tensor<2xf32>) -> tensor<2xf32>
      sdy.return %1 : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}"#;

#[test]
fn a_launch_on_two_devices_is_one_call() {
    let client = Client::new(2);
    let program = Program::compile(&client, 2, SUM).unwrap();
    let parts: Vec<_> = [[1.0, 2.0], [10.0, 20.0]]
        .iter()
        .enumerate()
        .map(|(device, part)| vec![client.buffer(device, &[2], part)])
        .collect();
    let outputs = program.execute(&parts).unwrap();
    for output in outputs {
        assert_eq!(numbers(output).unwrap(), [11.0, 22.0]);
    }
    numbers(parts[0][0]).unwrap_err();
    numbers(parts[1][0]).unwrap_err();
    // Buffers that changed places are on the wrong devices.
    let swapped =
        vec![vec![client.buffer(1, &[2], &[1.0, 2.0])], vec![client.buffer(0, &[2], &[3.0, 4.0])]];
    let (code, message) = program.execute(&swapped).unwrap_err();
    assert_eq!(code, 3);
    assert!(message.starts_with("argument 0 of sum: addressable shard 0 is"), "{message}");
    assert_eq!(
        numbers(swapped[0][0]).unwrap(),
        [1.0, 2.0],
        "nothing is taken by a launch that is refused"
    );
}

fn destroy(executable: *mut c_void) {
    let mut args = ffi::PJRT_Executable_Destroy_Args { executable, ..new() };
    call(api().PJRT_Executable_Destroy, &mut args).unwrap();
}

#[test]
fn executables_show_what_a_device_runs_and_what_it_costs() {
    let client = Client::new(2);
    let program = Program::compile(&client, 2, SUM).unwrap();
    let executable = program.unloaded();
    let mut shown = new::<ffi::PJRT_Program>();
    let at = &raw mut shown;
    let mut args =
        ffi::PJRT_Executable_OptimizedProgram_Args { executable, program: at.cast(), ..new() };
    call(api().PJRT_Executable_OptimizedProgram, &mut args).unwrap();
    let mut code = vec![0_u8; shown.code_size];
    shown.code = code.as_mut_ptr().cast();
    let mut args = ffi::PJRT_Executable_OptimizedProgram_Args {
        executable,
        program: (&raw mut shown).cast(),
        ..new()
    };
    call(api().PJRT_Executable_OptimizedProgram, &mut args).unwrap();
    assert_eq!(text(shown.format, shown.format_size), "mlir");
    let code = String::from_utf8(code).unwrap();
    assert!(code.contains("stablehlo.all_reduce"), "{code}");
    assert!(!code.contains("tensor<4xf32>") && !code.contains("sdy."), "{code}");

    let mut args = ffi::PJRT_Executable_GetCostAnalysis_Args { executable, ..new() };
    call(api().PJRT_Executable_GetCostAnalysis, &mut args).unwrap();
    let costs: Vec<ffi::PJRT_NamedValue> = list(args.properties, args.num_properties);
    let cost = |value: &ffi::PJRT_NamedValue| {
        assert_eq!(value.r#type, ffi::named_value::FLOAT);
        let bits = u32::try_from(value.value).unwrap();
        (text(value.name, value.name_size), f32::from_bits(bits))
    };
    let costs: Vec<_> = costs.iter().map(cost).collect();
    // Two sums of two numbers: the addition in the region, and eight bytes in and out and there.
    assert_eq!(costs, [("flops".to_owned(), 1.0), ("bytes accessed".to_owned(), 28.0)]);
    destroy(executable);
}

#[test]
fn options_that_xla_does_not_have_are_refused() {
    let client = Client::new(1);
    let format = "mlir";
    let program = ffi::PJRT_Program {
        code: ADD.as_ptr().cast_mut().cast(),
        code_size: ADD.len(),
        format: format.as_ptr().cast_mut().cast(),
        format_size: format.len(),
        ..new()
    };
    let options = |name: &str| {
        // env_option_overrides { name: { bool_field: true } }
        let size = |length: usize| u8::try_from(length).unwrap();
        let mut options = vec![0x3a, size(name.len() + 6), 0x0a, size(name.len())];
        options.extend_from_slice(name.as_bytes());
        options.extend([0x12, 2, 0x10, 1]);
        options
    };
    Program::compile_with(&client, &options("xla_embed_ir_in_executable"), &program).unwrap();
    let refused = Program::compile_with(&client, &options("invalid_key"), &program).err();
    assert_eq!(refused, Some((3, "No such compile option: 'invalid_key'".to_owned())));
}

#[test]
fn what_is_no_program_is_refused() {
    let client = Client::new(1);
    let refused = |text: &str| Program::compile(&client, 1, text).err().unwrap();
    let (code, _) = refused("module {");
    assert_eq!(code, 3);
    let (code, _) = refused("ML\u{ef}R");
    assert_eq!(code, 3);
    let (code, message) = refused(
        "module { func.func @main() -> tensor<f32> {
           %0 = stablehlo.custom_call @nobody() : () -> tensor<f32>
           return %0 : tensor<f32>
         } }",
    );
    assert_eq!(code, 12);
    assert!(message.contains("nobody"), "{message}");
    let (code, message) = Program::compile(&client, 2, ADD).err().unwrap();
    assert_eq!(code, 3);
    assert!(message.contains("partition"), "{message}");
}
