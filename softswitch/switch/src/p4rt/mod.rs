// SPDX-License-Identifier: Apache-2.0
//! The P4Runtime server.

pub mod annotation;
pub mod arbitration;
pub mod constraint;
pub mod deployment;
pub mod device;
pub mod digest;
// Clients of P4Runtime before 1.4 still use deprecated fields.
#[allow(deprecated)]
pub mod entity;
pub mod error;
pub mod integrity;
pub mod notes;
pub mod packet_io;
pub mod references;
pub mod role;
pub mod schema;
pub mod service;
pub mod stream;
pub mod translation;
pub mod types;
pub mod value;

/// Nanoseconds since 1970, for time stamps that controllers see.
fn epoch_nanos() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}
