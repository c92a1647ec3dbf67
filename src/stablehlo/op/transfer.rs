//! Attributes of operations that send to and receive from another device or the host.

/// Attributes of `send` and `recv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Identifies the exchange.
    pub channel_id: i64,
    /// Who is at the other end.
    pub channel_type: ChannelType,
    /// Whether that is the host.
    pub is_host_transfer: bool,
    /// Who sends to whom, between devices.
    pub source_target_pairs: Vec<(i64, i64)>,
}

/// The type of a channel, between which ends it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelType {
    /// From device to device.
    DeviceToDevice,
    /// From a device to the host.
    DeviceToHost,
    /// From the host to a device.
    HostToDevice,
}

impl ChannelType {
    /// The number that stands for it in `#stablehlo.channel_handle`.
    pub const fn number(self) -> u8 {
        match self {
            Self::DeviceToDevice => 1,
            Self::DeviceToHost => 2,
            Self::HostToDevice => 3,
        }
    }

    /// The type that `number` stands for.
    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            1 => Some(Self::DeviceToDevice),
            2 => Some(Self::DeviceToHost),
            3 => Some(Self::HostToDevice),
            _ => None,
        }
    }
}
