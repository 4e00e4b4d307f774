//! QuicSocks (Sy et al., "Accelerating QUIC's Connection Establishment on High-Latency Access Networks"): a SOCKS proxy to which a QUIC client
//! sends its first flight with the server's *name*. It resolves the name, forwards the flight, answers a Retry, and tells the client the address,
//! to which it migrates. `docs/quicsocks.md` is the protocol; [`client`] is the client's side.

pub mod account;
pub mod association;
pub mod client;
pub mod config;
pub mod control;
pub mod flight;
pub mod flow;
pub mod metrics;
pub mod outcome;
pub mod policy;
pub mod proxy;
pub mod resolve;
pub mod socks;
pub mod udp;
