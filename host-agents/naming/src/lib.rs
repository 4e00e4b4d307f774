// SPDX-License-Identifier: Apache-2.0
//! Names without DNS queries (Artemis, sections 3.2 and 3.5), for clients. Hashing turns a name into an anycast
//! *Service Address*. Once a server has announced its unicast address, a cache keeps that address for the server's
//! `service_ttl`.
//!
//! `docs/naming.md` is the specification. The C library is `libartemis.so` (`include/artemis.h`).

mod address;
mod cache;
#[cfg(target_env = "gnu")]
pub mod ffi;
mod instances;
mod name;
mod settings;

pub use address::{InvalidPrefix, ServicePrefix};
pub use cache::{CAPACITY, Cache, MAX_TTL};
pub use instances::Instances;
pub use name::{InvalidName, Name};
pub use settings::Settings;
