//! Tables and differences as the controller sends them.

use std::net::IpAddr;
use std::num::NonZeroU8;

use serde::{Deserialize, Serialize};

use crate::regions::Prefix;
use crate::service::Service;

/// A site, and where its switch takes tunnels.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    pub(crate) id: NonZeroU8,
    pub(crate) vtep: IpAddr,
}

/// Clients of a prefix, and their region.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    pub(crate) prefix: Prefix,
    pub(crate) region: u16,
}

/// The sites of a deployment, best first, for clients of these regions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    pub(crate) deployment: u16,
    pub(crate) sites: Vec<NonZeroU8>,
    pub(crate) regions: Vec<u16>,
}

/// A whole table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Whole {
    pub(crate) version: u64,
    pub(crate) site: NonZeroU8,
    pub(crate) sites: Vec<Site>,
    pub(crate) services: Vec<Service>,
    pub(crate) clients: Vec<Client>,
    pub(crate) mapping: Vec<Choice>,
}

/// Regions in which a deployment has no sites of its own any more.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gone {
    pub(crate) deployment: u16,
    pub(crate) regions: Vec<u16>,
}

/// What a difference takes out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    #[serde(default)]
    pub(crate) clients: Vec<Prefix>,
    #[serde(default)]
    pub(crate) mapping: Vec<Gone>,
    #[serde(default)]
    pub(crate) services: Vec<u16>,
}

/// The difference between two versions: what is added or replaced, and what goes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The version that it applies to.
    pub from: u64,
    pub(crate) version: u64,
    #[serde(default)]
    pub(crate) sites: Vec<Site>,
    #[serde(default)]
    pub(crate) services: Vec<Service>,
    #[serde(default)]
    pub(crate) clients: Vec<Client>,
    #[serde(default)]
    pub(crate) mapping: Vec<Choice>,
    #[serde(default)]
    pub(crate) remove: Remove,
}

/// Version, and how much there is of each list; of the mapping, (deployment, region) that have sites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sizes {
    pub(crate) version: u64,
    pub(crate) site: NonZeroU8,
    pub(crate) sites: usize,
    pub(crate) services: usize,
    pub(crate) deployments: usize,
    pub(crate) clients: usize,
    pub(crate) mapping: usize,
}
