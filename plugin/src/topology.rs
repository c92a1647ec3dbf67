//! The description of all devices, which outlives its client.

use std::ffi::c_void;

use lockstep::ifrt::Result;

use crate::abi::caller::{Caller, Shared};
use crate::abi::ffi;
use crate::attributes::NamedValues;
use crate::handle;
use crate::runtime::PLATFORM;

/// The devices of a client.
pub(crate) struct Topology {
    version: String,
    fingerprint: usize,
    devices: Shared<Vec<*mut c_void>>,
    attributes: NamedValues,
}

impl Topology {
    pub(crate) fn new(version: String, fingerprint: u64, devices: Vec<*mut c_void>) -> Self {
        // The API's field is as wide as an address, which is as wide as this.
        let fingerprint = usize::try_from(fingerprint).unwrap_or(usize::MAX);
        let attributes = NamedValues::new([]);
        Self { version, fingerprint, devices: Shared(devices), attributes }
    }
}

/// `PJRT_TopologyDescription_PlatformName`.
pub(crate) fn platform_name(
    args: &mut ffi::PJRT_TopologyDescription_PlatformName_Args,
    _: &Caller,
) -> Result<()> {
    handle::find::<Topology>(args.topology)?;
    (args.platform_name, args.platform_name_size) =
        (PLATFORM.as_ptr().cast_mut().cast(), PLATFORM.len());
    Ok(())
}

/// `PJRT_TopologyDescription_PlatformVersion`.
pub(crate) fn platform_version(
    args: &mut ffi::PJRT_TopologyDescription_PlatformVersion_Args,
    _: &Caller,
) -> Result<()> {
    let topology = handle::find::<Topology>(args.topology)?;
    let version = &topology.version;
    (args.platform_version, args.platform_version_size) =
        (version.as_ptr().cast_mut().cast(), version.len());
    Ok(())
}

/// `PJRT_TopologyDescription_GetDeviceDescriptions`.
pub(crate) fn device_descriptions(
    args: &mut ffi::PJRT_TopologyDescription_GetDeviceDescriptions_Args,
    _: &Caller,
) -> Result<()> {
    let topology = handle::find::<Topology>(args.topology)?;
    let devices = &topology.devices.0;
    (args.descriptions, args.num_descriptions) =
        (devices.as_ptr().cast_mut().cast(), devices.len());
    Ok(())
}

/// `PJRT_TopologyDescription_Attributes`.
pub(crate) fn attributes(
    args: &mut ffi::PJRT_TopologyDescription_Attributes_Args,
    _: &Caller,
) -> Result<()> {
    let topology = handle::find::<Topology>(args.topology)?;
    (args.attributes, args.num_attributes) = topology.attributes.parts();
    Ok(())
}

/// `PJRT_TopologyDescription_Fingerprint`.
pub(crate) fn fingerprint(
    args: &mut ffi::PJRT_TopologyDescription_Fingerprint_Args,
    _: &Caller,
) -> Result<()> {
    args.fingerprint = handle::find::<Topology>(args.topology)?.fingerprint;
    Ok(())
}

/// `PJRT_TopologyDescription_Destroy`: of one that a caller made; a client's lives as long as it.
pub(crate) fn destroy(
    args: &mut ffi::PJRT_TopologyDescription_Destroy_Args,
    _: &Caller,
) -> Result<()> {
    handle::find::<Topology>(args.topology).map(|_| ())
}
