// SPDX-License-Identifier: Apache-2.0
//! The packets of a site, and the expected output for each.

mod packet;
mod quic;
mod shortest;
mod tcp;

use anyhow::Result;
use serde::Deserialize;

pub use packet::Packet;
use quic::Quic;
use shortest::{Filter, Router};
use tcp::Frontage;

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Traffic {
    Frontage(Frontage),
    Quic(Quic),
    Router(Router),
    Acl(Filter),
}

impl Traffic {
    pub fn packets(&self) -> Result<Vec<Packet>> {
        match self {
            Self::Frontage(site) => site.packets(),
            Self::Quic(site) => site.packets(),
            Self::Router(site) => Ok(site.packets()),
            Self::Acl(site) => Ok(site.packets()),
        }
    }
}
