// SPDX-License-Identifier: Apache-2.0
//! The control-plane methods of [`Pipeline`](crate::Pipeline).

mod arrays;
mod calculations;
mod direct;
mod filters;
mod generator;
mod hashes;
mod idle;
mod lanes;
mod loopback;
mod meters;
mod multicast;
mod port_metadata;
mod profiles;
mod tables;

pub use filters::FilterCell;
pub use generator::GeneratorSnapshot;
pub use idle::IdleEntry;
pub use meters::MeterState;
pub use tables::LookupKey;

use crate::error::StateError;

fn no_such(kind: &'static str, index: u32) -> StateError {
    StateError::NoSuchObject {
        kind,
        id: format!("index {index}"),
    }
}
