// SPDX-License-Identifier: Apache-2.0
//! BMv2's interface: names, numbers and types of the functions, by service and subject.

mod codes;
mod multicast;
mod records;
mod simple_switch;
mod standard;

pub use codes::*;
pub use multicast::Multicast;
pub use records::*;
pub use simple_switch::{Clock, Mirroring, Queues};
pub use standard::{
    Calculations, Counters, DirectResources, Learning, Meters, Ports, Profiles, Programs,
    Registers, Tables, ValueSets,
};
