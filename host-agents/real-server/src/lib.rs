// SPDX-License-Identifier: Apache-2.0
//! The real server of QDSR (`docs/handoff.md`): balancers delegate requests of their clients to it, and it responds to these
//! clients directly.

#![forbid(unsafe_code)]

pub mod config;
pub mod cookies;
mod credit;
mod delegates;
mod delegation;
mod exchange;
mod metrics;
mod origin;
mod replay_guard;
mod resumable;
mod round_trips;
pub mod server;
mod session;
mod shared;
mod writer;
