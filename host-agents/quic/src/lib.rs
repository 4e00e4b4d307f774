// SPDX-License-Identifier: Apache-2.0
//! The QUIC library of Frontage's agents, over [`noq`]: addresses and connection ids that carry CloudCookies, a view
//! of every packet, path tracking across client migration, and HTTP/3.
//!
//! An agent serves or dials QUIC through noq as usual, with two of its parts replaced:
//!
//! - [`session::Config`] takes the place of noq's TLS configuration. It shows every 1-RTT packet in the clear to a
//!   [`session::Observer`], adds transport parameters that noq does not know, and exports the traffic secrets.
//! - [`socket::Socket`] takes the place of noq's UDP socket. It hides from noq which of the server's addresses a
//!   client uses, and sends every batch from the address that the client expects, with RPT, N_AF and N_FF sealed into
//!   it.
//!
//! A [`meter::Meter`] connects the two: it is the observer of a server's connection, and tells the socket what each
//! batch carries and where its client is ([`migration`]). Start with these, and with `tests/loopback.rs`, a whole
//! server and client in one page.

#![forbid(unsafe_code)]

pub mod adjusted;
pub mod announce;
mod carrier;
pub mod cid;
pub mod gather;
pub mod h3;
pub mod layer;
pub mod meter;
pub mod migration;
pub mod min_rtt;
pub mod pacing;
pub mod quic_lb;
pub mod recent;
pub mod relocate;
pub mod session;
pub mod socket;
mod tracker;
mod udp;

pub use frontage_quic_signals::keys;
