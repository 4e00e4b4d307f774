//! All of the switch's tests in one program: each links the whole switch, at length.

mod common;

mod arbitration;
mod batches;
mod config;
mod default_entries;
mod entities;
mod inside;
mod packets;
mod program;
mod reads;
mod rings;
mod robustness;
mod roles;
mod selectors;
mod tables;
mod threads;
mod translation;
mod veth;
