// SPDX-License-Identifier: Apache-2.0
//! Connections that follow a name whose address changes, as msocket provides for Auspice (Sharma et al., "A Global Name
//! Service for a Highly Mobile Internetwork", and the Auspice paper, section 2.2.3).
//!
//! A *session* carries the bytes of one local TCP connection between two proxies. It survives its *carriers*, which are
//! TCP connections between addresses that come and go. `docs/mobile.md` describes the protocol.
//!
//! [`session`] is the state machine, without sockets or a clock. [`handshake`] authenticates carriers, [`carrier`]
//! transmits frames on them, and [`driver`] connects a session to a local connection. [`listen`] is the mobile service's
//! side with its [`arrivals`], and [`connect`] the client's, which [`dial`]s. [`publish`] and [`follow`] write and read the record, and [`addresses`] follows
//! the kernel's interfaces.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod addresses;
pub mod arrivals;
pub mod carrier;
pub mod connect;
pub mod dial;
pub mod driver;
pub mod error;
pub mod follow;
pub mod frame;
pub mod handshake;
pub mod key;
pub mod listen;
pub mod local;
pub mod metrics;
pub mod publish;
pub mod records;
pub mod session;
