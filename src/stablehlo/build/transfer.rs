//! Tokens, tuples, and what is sent and received.

use super::collective::pairs;
use super::{Attributes, Built};
use crate::stablehlo::op::{ChannelType, OpKind, Transfer};

/// The operations of this file.
pub(super) const KNOWN: &[&str] = &[
    "after_all",
    "create_token",
    "tuple",
    "get_tuple_element",
    "infeed",
    "outfeed",
    "send",
    "recv",
];

/// The operation called `op`, if it is one of this file's.
pub(super) fn kind(op: &str, attributes: &mut Attributes) -> Built<Option<OpKind>> {
    Ok(Some(match op {
        // A new token is one that comes after nothing.
        "after_all" | "create_token" => OpKind::AfterAll,
        "tuple" => OpKind::Tuple,
        "get_tuple_element" => OpKind::GetTupleElement { index: attributes.integer("index")? },
        "infeed" => {
            // How the host lays elements out is a matter between it and the runtime.
            attributes.take("layout");
            OpKind::Infeed { config: config(attributes, "infeed_config")? }
        }
        "outfeed" => OpKind::Outfeed { config: config(attributes, "outfeed_config")? },
        "send" => OpKind::Send(transfer(attributes)?),
        "recv" => OpKind::Recv(transfer(attributes)?),
        _ => return Ok(None),
    }))
}

fn config(attributes: &mut Attributes, name: &str) -> Built<String> {
    Ok(attributes.optional_string(name)?.unwrap_or_default())
}

fn transfer(attributes: &mut Attributes) -> Built<Transfer> {
    let mut channel = attributes.required_fields("channel_handle", "stablehlo.channel_handle")?;
    let channel_id = channel.integer("handle")?;
    let channel_type = ChannelType::from_number(channel.integer("type")?);
    let channel_type = channel_type.ok_or_else(|| channel.not_known("this type of channel"))?;
    channel.finish()?;
    Ok(Transfer {
        channel_id,
        channel_type,
        is_host_transfer: attributes.flag("is_host_transfer")?,
        source_target_pairs: pairs(attributes)?.unwrap_or_default(),
    })
}
