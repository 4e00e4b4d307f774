//! CCLB7 for QUIC: an HTTP/3 load balancer and file server that is a producer of CloudCookies (CloudCookie, section IV-A).
//!
//! `docs/cookie.md` is the cookie's specification, `frontage-quic` writes it into the packets; here is what it is written about.

pub mod artemis;
pub mod body;
pub mod conditions;
pub mod config;
pub mod connection;
pub mod exchange;
pub mod file_body;
pub mod files;
pub mod handoff;
pub mod log;
pub mod metrics;
pub mod proxy;
pub mod routes;
pub mod server;
pub mod tls;
