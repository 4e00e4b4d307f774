// SPDX-License-Identifier: Apache-2.0
//! The service dispatcher of Artemis.
//!
//! Packets of first flights arrive through tunnels. The server name in them decides to which sites and replica they go, and the
//! dispatcher forwards them unchanged through tunnels. `docs/dispatcher.md` describes the system.
//!
//! - [`engine`] processes packets, without sockets. [`worker`] runs one engine per core on a socket.
//! - [`control`] holds the controller's table and the replicas' heartbeats, which arrive over HTTP ([`api`]).
//!   It publishes a [`view::View`] to the workers after each change.

pub mod api;
pub mod config;
pub mod control;
pub mod engine;
pub mod mapping;
pub mod measurements;
pub mod message;
pub mod metrics;
pub mod outbox;
pub mod outcome;
pub mod pending;
pub mod probe;
pub mod regions;
pub mod replicas;
pub mod selection;
pub mod service;
pub mod table;
pub mod target_cache;
pub mod targets;
pub mod udp;
pub mod view;
pub mod worker;
