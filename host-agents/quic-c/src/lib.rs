// SPDX-License-Identifier: Apache-2.0
//! The signals of a QUIC server in C. `include/frontage/quic.h` documents the library; `docs/quic-servers.md` shows how
//! a server uses it.

#![warn(missing_docs)]

mod connection;
mod ffi;
mod server;

pub use connection::{Connection, Response};
pub use server::{Server, Settings};
