// SPDX-License-Identifier: Apache-2.0
//! The proxy on the loopback interface, with a real resolver (unbound) and real QUIC servers and clients.

mod c_library;
mod control;
mod datagrams;
mod early_data;
mod exhaustion;
mod handshakes;
mod raw_client;
mod silent_resolver;
mod testbed;
mod unmodified_client;
