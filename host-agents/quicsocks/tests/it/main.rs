//! Whole proxies on the loopback interface, beside a real resolver (unbound), real QUIC servers and clients.

mod control;
mod datagrams;
mod exhaustion;
mod handshakes;
mod lab;
mod raw;
mod silence;
mod unmodified;
