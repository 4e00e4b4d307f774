//! QDSR (ATC 2024): a load balancer keeps a QUIC connection and its uplink, and grants single streams to *real servers*, which send those
//! streams' packets straight to the client.
//!
//! ```text
//!   client ----- everything ----> load balancer --- grant, feedback ---> real server
//!     ^  ^------ its streams ----------'      <---- what became of it ------'  |
//!     '----------------- the granted streams' packets, from the balancer's address
//! ```

pub mod borrow;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod grant;
pub mod http3;
pub mod lend;
pub mod link;
pub mod message;
pub mod numbers;
pub mod place;
#[cfg(feature = "vectors")]
pub mod vectors;
