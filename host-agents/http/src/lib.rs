// SPDX-License-Identifier: Apache-2.0
//! HTTP serving that the load balancer and the real server share: routes, files, proxying to origins, and the access log,
//! with the configuration of each.

#![forbid(unsafe_code)]

pub mod access_log;
pub mod body;
mod conditions;
pub mod config;
mod file_body;
mod file_cache;
mod files;
mod policy;
mod prepared;
pub mod priority;
mod proxy;
mod qpack;
pub mod response;
pub mod routes;

pub use policy::{Candidate, Draw, Policy, hash};
pub use prepared::PreparedResponse;
pub use proxy::Proxy;
