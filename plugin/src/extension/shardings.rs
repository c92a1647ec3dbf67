//! How the parameters and outputs of an executable are spread, as `OpSharding` messages.

use lockstep::ifrt::Result;

use crate::abi::call::entry;
use crate::abi::caller::{Caller, Shared};
use crate::abi::ffi;
use crate::abi::structure::Pointer;
use crate::executable::{Executable, Texts};
use crate::handle;

/// The last of the list.
pub(crate) static EXTENSION: Shared<ffi::PJRT_Shardings_Extension> =
    Shared(ffi::PJRT_Shardings_Extension {
        base: ffi::PJRT_Extension_Base {
            struct_size: size_of::<ffi::PJRT_Shardings_Extension>(),
            r#type: ffi::extension_type::SHARDINGS,
            next: std::ptr::null_mut(),
        },
        PJRT_Shardings_PJRT_Executable_ParameterShardings: entry(parameter_shardings),
        PJRT_Shardings_PJRT_Executable_OutputShardings: entry(output_shardings),
    });

/// Null lists for a program on one device.
fn parts(shardings: Option<&Texts>) -> (usize, Pointer, Pointer) {
    shardings.map_or((0, std::ptr::null_mut(), std::ptr::null_mut()), Texts::parts)
}

fn parameter_shardings(
    args: &mut ffi::PJRT_Shardings_PJRT_Executable_ParameterShardings_Args,
    _: &Caller,
) -> Result<()> {
    let executable = handle::find::<Executable>(args.executable)?;
    (args.num_parameters, args.shardings, args.sharding_sizes) =
        parts(executable.parameter_shardings());
    Ok(())
}

fn output_shardings(
    args: &mut ffi::PJRT_Shardings_PJRT_Executable_OutputShardings_Args,
    _: &Caller,
) -> Result<()> {
    let executable = handle::find::<Executable>(args.executable)?;
    (args.num_outputs, args.shardings, args.sharding_sizes) = parts(executable.output_shardings());
    Ok(())
}
