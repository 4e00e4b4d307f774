// SPDX-License-Identifier: Apache-2.0
//! The signals that a QUIC server sends to the switch (`docs/cookie.md`), whichever QUIC implementation it uses:
//! sealed connection ids, the static cookie of its `preferred_address`, and a dynamic cookie in each source address.
//!
//! `frontage-quic` uses this crate for noq, and `frontage-quic-c` for servers in C.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod ids;
pub mod keys;
pub mod prefix;
