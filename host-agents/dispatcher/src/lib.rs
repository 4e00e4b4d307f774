//! Artemis' service dispatcher: packets of first flights come in through tunnels, the name in them decides where they go, and
//! they go on through tunnels, unchanged. `docs/dispatcher.md` describes it.
//!
//! [`engine`] decides, without sockets; [`worker`] brings it packets, a thread a core; [`control`] is what the controller and
//! the replicas tell over HTTP ([`api`]).

pub mod api;
pub mod bench;
pub mod choice;
pub mod config;
pub mod control;
pub mod counts;
pub mod engine;
pub mod flights;
pub mod mapping;
pub mod measurements;
pub mod message;
pub mod metrics;
pub mod outbox;
pub mod probe;
pub mod recent;
pub mod regions;
pub mod replicas;
pub mod service;
pub mod table;
pub mod udp;
pub mod view;
pub mod worker;
