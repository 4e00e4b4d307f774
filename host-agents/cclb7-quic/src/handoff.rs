// SPDX-License-Identifier: Apache-2.0
//! Delegation of requests to real servers, which respond to clients directly (QDSR; `docs/handoff.md`).

mod client;
mod config;
mod counters;
mod requests;
mod servers;
mod session;
mod sessions;
mod streams;

pub use client::Client;
pub use config::Handoff as Config;
pub use counters::LocalReason;
pub use requests::{DelegatedResponse, Outcome, RequestDelegator};
pub use servers::{Pool, RealServer, RealServers, request_key};
