//! The clients against `frontage-cclb7-quic`.

mod against_server;
mod by_name;
#[allow(dead_code, reason = "it uses a part")]
#[path = "../../../quicsocks/tests/it/lab.rs"]
mod lab;
mod through_proxy;
mod world;
