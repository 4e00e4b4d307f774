// SPDX-License-Identifier: Apache-2.0
//! Configurations of roles: Stratum's message `stratum.P4RoleConfig` (`p4_role_config.proto`), because the specification
//! defines none.

use std::collections::BTreeSet;

use prost::Message;
use prost::bytes::Bytes;
use prost_types::Any;
use softswitch_pipeline::Value;

use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::value;
use crate::proto::p4::v1::PacketMetadata;

/// The message's name in `Any.type_url`.
const TYPE_NAME: &str = "stratum.P4RoleConfig";

#[derive(Clone, PartialEq, Message)]
struct P4RoleConfig {
    #[prost(uint32, repeated, tag = "1")]
    exclusive_p4_ids: Vec<u32>,
    #[prost(uint32, repeated, tag = "2")]
    shared_p4_ids: Vec<u32>,
    #[prost(message, optional, tag = "3")]
    packet_in_filter: Option<PacketFilter>,
    #[prost(bool, tag = "4")]
    receives_packet_ins: bool,
    #[prost(bool, tag = "5")]
    can_push_pipeline: bool,
}

#[derive(Clone, PartialEq, Message)]
struct PacketFilter {
    #[prost(uint32, tag = "1")]
    metadata_id: u32,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// The configuration of a role.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleConfig {
    /// Ids of objects that no other role may access.
    pub exclusive: BTreeSet<u32>,
    /// Ids of objects that other roles may access, too.
    pub shared: BTreeSet<u32>,
    /// The packets that the role receives.
    pub packet_ins: PacketIns,
    /// The role may set the forwarding pipeline config.
    pub pushes_pipeline: bool,
    /// The configuration as the controller sent it.
    pub written: Any,
}

/// The packets that a role receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketIns {
    /// No packets.
    None,
    /// All packets.
    All,
    /// Packets with this value of a metadata field.
    With {
        /// P4Info id of the field.
        metadata_id: u32,
        /// The value, in canonical form.
        value: Bytes,
    },
}

impl PacketIns {
    /// Returns true if they contain a packet with these metadata.
    pub fn takes(&self, metadata: &[PacketMetadata]) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::With { metadata_id, value } => {
                let mut metadata = metadata.iter();
                metadata.any(|m| m.metadata_id == *metadata_id && m.value == *value)
            }
        }
    }
}

impl RoleConfig {
    /// Decodes `role.config`.
    ///
    /// # Errors
    /// INVALID_ARGUMENT, with the fault.
    pub fn decode(config: &Any) -> P4Result<Self> {
        let name = config.type_url.rsplit('/').next().unwrap_or_default();
        if name != TYPE_NAME {
            return Err(invalid(format!(
                "unknown type '{}': use {TYPE_NAME}, or leave role.config unset for full access",
                config.type_url
            )));
        }
        let decoded = P4RoleConfig::decode(config.value.as_slice());
        let decoded = decoded.map_err(|e| invalid(format!("not a {TYPE_NAME}: {e}")))?;
        Ok(Self {
            packet_ins: packet_ins(&decoded)?,
            exclusive: decoded.exclusive_p4_ids.into_iter().collect(),
            shared: decoded.shared_p4_ids.into_iter().collect(),
            pushes_pipeline: decoded.can_push_pipeline,
            written: config.clone(),
        })
    }

    /// Returns true if the role may access the object with this id.
    pub fn lists(&self, id: u32) -> bool {
        self.exclusive.contains(&id) || self.shared.contains(&id)
    }

    /// Returns an id that two roles cannot both have as these configurations demand.
    pub fn conflict(&self, other: &Self) -> Option<u32> {
        let exclusive = self.exclusive.iter().find(|id| other.lists(**id));
        let shared = || other.exclusive.iter().find(|id| self.lists(**id));
        exclusive.or_else(shared).copied()
    }
}

fn packet_ins(config: &P4RoleConfig) -> P4Result<PacketIns> {
    match (&config.packet_in_filter, config.receives_packet_ins) {
        (None, false) => Ok(PacketIns::None),
        (None, true) => Ok(PacketIns::All),
        (Some(_), false) => Err(invalid(
            "packet_in_filter is set, but receives_packet_ins is not: set both or none".into(),
        )),
        (Some(filter), true) if filter.value.is_empty() => Err(invalid(
            "packet_in_filter.value is empty: set the value of the metadata field".into(),
        )),
        (Some(filter), true) => Ok(PacketIns::With {
            metadata_id: filter.metadata_id,
            value: value::encode(&Value::from_be_bytes(&filter.value)),
        }),
    }
}

fn invalid(reason: String) -> P4Error {
    P4Error::invalid(format!("role.config: {reason}"))
}
