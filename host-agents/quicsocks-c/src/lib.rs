// SPDX-License-Identifier: Apache-2.0
//! QuicSocks for clients in C with their own QUIC stack. `include/frontage/quicsocks.h` documents the library;
//! `docs/quicsocks.md` describes the protocol.

mod association;
mod connection;
mod failure;
mod ffi;
