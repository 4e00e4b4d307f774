// SPDX-License-Identifier: Apache-2.0
//! A QuicSocks proxy (Sy et al., "Accelerating QUIC's Connection Establishment on High-Latency Access Networks").
//!
//! A QUIC client sends its first flight with the server's *name* to this SOCKS proxy. The proxy resolves the name, forwards
//! the flight, answers a Retry, and reports the server's address, so that the client can migrate to the direct path.
//! `docs/quicsocks.md` describes the protocol. The client library is the crate `frontage-quicsocks-client`, which also has
//! the wire format.
//!
//! [`proxy`] accepts connections. [`control`] serves a control connection, [`association`] the datagrams of its
//! client, and [`flow`] one destination of an association.

pub mod association;
pub mod client_port;
pub mod config;
pub mod control;
pub mod flow;
pub mod metrics;
pub mod outcome;
pub mod policy;
pub mod proxy;
pub mod quota;
pub mod resolve;
pub mod retry;
pub mod shared;
