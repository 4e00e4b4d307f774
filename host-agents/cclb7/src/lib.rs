// SPDX-License-Identifier: Apache-2.0
//! CCLB7 for TCP: makes an unmodified server on an unmodified kernel a producer of CloudCookies.
//!
//! The work is done by the eBPF programs in `bpf/`; this crate loads, attaches, reads and measures them. `docs/cookie.md`
//! is the cookie's specification.

pub mod abi;
pub mod agent;
pub mod bench;
pub mod bpf;
pub mod frame;
pub mod state;
pub mod stats;
pub mod system;
