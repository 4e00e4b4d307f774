// SPDX-License-Identifier: Apache-2.0
//! BMv2's interface: names, numbers and types of the functions, by service and subject.

mod codes;
mod multicast;
mod records;
mod simple_switch;
mod standard;

/// Returns all functions.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    let subjects = [
        <dyn Calculations>::FUNCTIONS,
        <dyn Clock>::FUNCTIONS,
        <dyn Counters>::FUNCTIONS,
        <dyn DirectResources>::FUNCTIONS,
        <dyn Learning>::FUNCTIONS,
        <dyn Meters>::FUNCTIONS,
        <dyn Mirroring>::FUNCTIONS,
        <dyn Multicast>::FUNCTIONS,
        <dyn Ports>::FUNCTIONS,
        <dyn Profiles>::FUNCTIONS,
        <dyn Programs>::FUNCTIONS,
        <dyn Queues>::FUNCTIONS,
        <dyn Registers>::FUNCTIONS,
        <dyn Tables>::FUNCTIONS,
        <dyn ValueSets>::FUNCTIONS,
    ];
    subjects.into_iter().flatten()
}

pub use crate::function::{Argument, Function};
pub use codes::*;
pub use multicast::Multicast;
pub use records::*;
pub use simple_switch::{Clock, Mirroring, Queues};
pub use standard::{
    Calculations, Counters, DirectResources, Learning, Meters, Ports, Profiles, Programs,
    Registers, Tables, ValueSets,
};
