//! `PJRT_Buffer_MemoryLayout`: the order of an array's elements, as callers say it.

use std::ffi::c_void;

use lockstep::ifrt::{Layout, Result, Status};

use crate::abi::caller::{Caller, Items, Plain, Versioned};
use crate::abi::ffi::{PJRT_Buffer_MemoryLayout, PJRT_Buffer_MemoryLayout_Tiled, layout_type};

/// The layout that a caller asks for; row-major when it is null, or says no order.
///
/// # Errors
/// `InvalidArgument` when it is malformed; `Unimplemented` for tiles and strides.
pub(crate) fn read(caller: &Caller, at: *mut c_void, rank: usize) -> Result<Layout> {
    if at.is_null() {
        return Ok(Layout::row_major(rank));
    }
    // All versions have the same fields, and jaxlib leaves the size of the structure unset.
    let layout: PJRT_Buffer_MemoryLayout = caller.item(at, "layout")?;
    if layout.r#type != layout_type::TILED {
        return Err(Status::unimplemented("layouts by strides"));
    }
    if layout.tiled.num_tiles != 0 {
        return Err(Status::unimplemented("layouts with tiles"));
    }
    let tiled = &layout.tiled;
    if tiled.minor_to_major_size == 0 {
        return Ok(Layout::row_major(rank));
    }
    let order: Items<i64> =
        caller.items(tiled.minor_to_major, tiled.minor_to_major_size, "minor_to_major")?;
    let order = order.iter().rev().map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX));
    let layout = Layout::new(order.collect::<Vec<_>>())?;
    match layout.major_to_minor().len() == rank {
        true => Ok(layout),
        false => Err(Status::invalid_argument(format!("{layout} is no layout of rank {rank}"))),
    }
}

/// Checks that a layout on a device is the one that arrays have there.
///
/// # Errors
/// As [`read`]; `Unimplemented` when it is another.
pub(crate) fn require_row_major(caller: &Caller, at: *mut c_void, rank: usize) -> Result<()> {
    let layout = read(caller, at, rank)?;
    if layout == Layout::row_major(rank) {
        return Ok(());
    }
    Err(Status::unimplemented(format!("arrays with the layout {layout}; they are row-major here")))
}

/// What is said of a row-major array; `minor_to_major` are its dimensions, the last first.
pub(crate) fn row_major(minor_to_major: &[i64]) -> PJRT_Buffer_MemoryLayout {
    PJRT_Buffer_MemoryLayout {
        struct_size: PJRT_Buffer_MemoryLayout::STRUCT_SIZE,
        tiled: PJRT_Buffer_MemoryLayout_Tiled {
            struct_size: PJRT_Buffer_MemoryLayout_Tiled::STRUCT_SIZE,
            minor_to_major: minor_to_major.as_ptr().cast_mut().cast(),
            minor_to_major_size: minor_to_major.len(),
            ..PJRT_Buffer_MemoryLayout_Tiled::ZERO
        },
        r#type: layout_type::TILED,
        ..PJRT_Buffer_MemoryLayout::ZERO
    }
}
