// SPDX-License-Identifier: Apache-2.0
//! Delegation of requests to real servers, which respond to clients directly (QDSR; `docs/handoff.md`).

mod client;
mod comparison;
mod config;
mod counters;
mod health;
mod requests;
mod resume;
mod servers;
mod session;
mod sessions;
mod streams;

pub use client::Client;
pub use config::Handoff as Config;
pub use counters::LocalReason;
pub use requests::{DelegatedResponse, Interruption, Outcome, RequestDelegator};
pub use resume::ResponseStream;
pub use servers::{Pool, RealServer, RealServers, request_key};
