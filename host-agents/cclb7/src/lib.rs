// SPDX-License-Identifier: Apache-2.0
//! CCLB7 for TCP: an agent that adds CloudCookies to the packets of an unmodified server on an unmodified kernel.
//!
//! The eBPF programs in `bpf/` do the work; this crate loads and attaches them and reads their maps. `docs/cookie.md`
//! is the specification of the cookie.

pub mod abi;
pub mod agent;
pub mod bpf;
pub mod frame;
pub mod kfunc;
pub mod state;
pub mod stats;
pub mod syn_keys;
pub mod system;
