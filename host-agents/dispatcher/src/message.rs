// SPDX-License-Identifier: Apache-2.0
//! Tables and deltas in the controller's JSON format.

use std::net::IpAddr;
use std::num::NonZeroU8;

use serde::{Deserialize, Serialize};

use crate::regions::Prefix;
use crate::service::Service;

/// A site and the tunnel endpoint of its switch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    pub(crate) id: NonZeroU8,
    pub(crate) vtep: IpAddr,
}

/// The region of a client prefix.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    pub(crate) prefix: Prefix,
    pub(crate) region: u16,
}

/// The sites of a deployment for clients of these regions, best first.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingEntry {
    pub(crate) deployment: u16,
    pub(crate) sites: Vec<NonZeroU8>,
    pub(crate) regions: Vec<u16>,
}

/// A full table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullTable {
    pub(crate) version: u64,
    pub(crate) site: NonZeroU8,
    pub(crate) sites: Vec<Site>,
    pub(crate) services: Vec<Service>,
    pub(crate) clients: Vec<Client>,
    pub(crate) mapping: Vec<MappingEntry>,
}

/// Regions whose mapping of a deployment is removed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedMapping {
    pub(crate) deployment: u16,
    pub(crate) regions: Vec<u16>,
}

/// Entries that a delta removes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removals {
    #[serde(default)]
    pub(crate) clients: Vec<Prefix>,
    #[serde(default)]
    pub(crate) mapping: Vec<RemovedMapping>,
    #[serde(default)]
    pub(crate) services: Vec<u16>,
}

/// The difference between two versions of a table: entries to add or replace, and entries to remove.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableDelta {
    /// Version to which the delta applies.
    pub from: u64,
    pub(crate) version: u64,
    #[serde(default)]
    pub(crate) sites: Vec<Site>,
    #[serde(default)]
    pub(crate) services: Vec<Service>,
    #[serde(default)]
    pub(crate) clients: Vec<Client>,
    #[serde(default)]
    pub(crate) mapping: Vec<MappingEntry>,
    #[serde(default)]
    pub(crate) remove: Removals,
}

/// Version of a table and the number of its entries. `mapping` counts the pairs of deployment and region that have sites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableSummary {
    pub(crate) version: u64,
    pub(crate) site: NonZeroU8,
    pub(crate) sites: usize,
    pub(crate) services: usize,
    pub(crate) deployments: usize,
    pub(crate) clients: usize,
    pub(crate) mapping: usize,
}
