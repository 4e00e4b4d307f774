// SPDX-License-Identifier: Apache-2.0
//! The commands, one file per subject.

pub mod config;
pub mod counters;
pub mod defaults;
pub mod dump;
pub mod entries;
pub mod general;
pub mod groups;
pub mod indirect;
pub mod members;
pub mod meters;
pub mod mirroring;
pub mod multicast;
pub mod profiles;
pub mod program;
pub mod registers;
pub mod value_sets;
