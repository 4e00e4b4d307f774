// SPDX-License-Identifier: Apache-2.0
//! QDSR (ATC 2024): a load balancer keeps a QUIC connection and everything that the client sends, and delegates individual
//! streams to *real servers*, which send those streams' packets directly to the client.
//!
//! ```text
//!   client ----- everything ----> load balancer --- grant, feedback ---> real server
//!     ^  ^------ its streams ----------'      <---- stream status --------'  |
//!     '----- packets of the delegated streams, from the balancer's address --'
//! ```
//!
//! - [`delegator`]: the balancer's side of a client's connection.
//! - [`delegate`]: the real server's side.
//! - [`message`] and [`link`]: the protocol between both, and the connection that carries it.
//!
//! `docs/handoff.md` specifies the protocol.

#![forbid(unsafe_code)]

pub mod client_address;
pub mod delegate;
pub mod delegator;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod grant;
pub mod http3;
pub mod link;
pub mod message;
pub mod number_ledger;
#[cfg(feature = "vectors")]
pub mod vectors;
