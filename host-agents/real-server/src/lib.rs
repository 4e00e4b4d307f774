//! QDSR's real server (`docs/handoff.md`): balancers hand it requests of their clients, and it answers these clients itself.

pub mod config;
pub mod cookies;
mod credit;
mod exchange;
mod grant;
mod granted;
mod metrics;
mod origin;
pub mod server;
mod sources;
mod writer;
