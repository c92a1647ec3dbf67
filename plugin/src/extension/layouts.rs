//! The order of elements in memory, as text: all arrays are row-major.

use std::ffi::c_void;
use std::sync::Arc;

use lockstep::ifrt::{Layout, Result};

use super::shardings;
use crate::abi::call::entry;
use crate::abi::caller::{Caller, Shared};
use crate::abi::ffi;
use crate::buffer::Buffer;
use crate::client::Client;
use crate::executable::Executable;
use crate::topology::Topology;
use crate::{handle, serialized};

/// The first of the list.
pub(crate) static EXTENSION: Shared<ffi::PJRT_Layouts_Extension> =
    Shared(ffi::PJRT_Layouts_Extension {
        base: ffi::PJRT_Extension_Base {
            struct_size: size_of::<ffi::PJRT_Layouts_Extension>(),
            r#type: ffi::extension_type::LAYOUTS,
            next: (&raw const shardings::EXTENSION).cast_mut().cast(),
        },
        PJRT_Layouts_MemoryLayout_Destroy: entry(destroy),
        PJRT_Layouts_MemoryLayout_Serialize: entry(serialize),
        PJRT_Layouts_PJRT_Client_GetDefaultLayout: entry(default_layout),
        PJRT_Layouts_PJRT_Buffer_MemoryLayout: entry(buffer_layout),
        PJRT_Layouts_PJRT_Topology_GetDefaultLayout: entry(topology_layout),
        PJRT_Layouts_PJRT_Executable_GetOutputLayouts: entry(output_layouts),
        PJRT_Layouts_PJRT_Executable_GetParameterLayouts: entry(parameter_layouts),
    });

/// A layout that a caller has a handle to.
pub(crate) struct MemoryLayout(Layout);

/// The layouts of an executable's outputs or parameters, which live as long as it.
pub(crate) struct MemoryLayouts(Shared<Vec<*mut c_void>>);

impl MemoryLayouts {
    pub(crate) fn new(layouts: Vec<Layout>) -> Self {
        Self(Shared(layouts.into_iter().map(lend).collect()))
    }

    /// Where their handles are, and how many.
    fn parts(&self) -> (*mut c_void, usize) {
        (self.0.0.as_ptr().cast_mut().cast(), self.0.0.len())
    }
}

impl Drop for MemoryLayouts {
    fn drop(&mut self) {
        for layout in &self.0.0 {
            let _ = handle::remove::<MemoryLayout>(*layout);
        }
    }
}

fn lend(layout: Layout) -> *mut c_void {
    handle::insert(Arc::new(MemoryLayout(layout)))
}

fn destroy(args: &mut ffi::PJRT_Layouts_MemoryLayout_Destroy_Args, _: &Caller) -> Result<()> {
    handle::remove::<MemoryLayout>(args.layout).map(|_| ())
}

fn serialize(args: &mut ffi::PJRT_Layouts_MemoryLayout_Serialize_Args, _: &Caller) -> Result<()> {
    let text = handle::find::<MemoryLayout>(args.layout)?.0.to_string();
    (
        args.serialized_bytes,
        args.serialized_bytes_size,
        args.serialized_layout,
        args.serialized_layout_deleter,
    ) = serialized::lend(text.into_bytes());
    Ok(())
}

fn default_layout(
    args: &mut ffi::PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args,
    _: &Caller,
) -> Result<()> {
    handle::find::<Client>(args.client)?;
    args.layout = lend(Layout::row_major(args.num_dims));
    Ok(())
}

fn topology_layout(
    args: &mut ffi::PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args,
    _: &Caller,
) -> Result<()> {
    handle::find::<Topology>(args.topology_description)?;
    args.layout = lend(Layout::row_major(args.num_dims));
    Ok(())
}

fn buffer_layout(
    args: &mut ffi::PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args,
    _: &Caller,
) -> Result<()> {
    let rank = handle::find::<Buffer>(args.buffer)?.array().shape().rank();
    args.layout = lend(Layout::row_major(rank));
    Ok(())
}

fn output_layouts(
    args: &mut ffi::PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args,
    _: &Caller,
) -> Result<()> {
    let executable = handle::find::<Executable>(args.executable)?;
    (args.layouts, args.num_outputs) = executable.output_layouts().parts();
    Ok(())
}

fn parameter_layouts(
    args: &mut ffi::PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args,
    _: &Caller,
) -> Result<()> {
    let executable = handle::find::<Executable>(args.executable)?;
    (args.layouts, args.num_parameters) = executable.parameter_layouts().parts();
    Ok(())
}
