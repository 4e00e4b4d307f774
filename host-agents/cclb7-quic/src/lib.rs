// SPDX-License-Identifier: Apache-2.0
//! CCLB7 for QUIC: an HTTP/3 load balancer and file server that produces CloudCookies (CloudCookie, section IV-A).
//!
//! `docs/cookie.md` specifies the cookie, and `frontage-quic` writes it into packets. This crate serves the requests, delegates
//! them to real servers ([`handoff`]), takes part in Artemis ([`artemis`]), and moves clients during their connections
//! ([`moves`]).

#![forbid(unsafe_code)]

pub mod artemis;
pub mod config;
pub mod connection;
mod early;
mod exchange;
pub mod handoff;
mod metrics;
pub mod moves;
mod observer;
pub mod server;
pub mod tls;

use frontage_http::body;
