// SPDX-License-Identifier: Apache-2.0
//! State that all exchanges of the server share.

use std::convert::Infallible;

use frontage_http::access_log::AccessLog;
use frontage_http::config::Congestion;
use frontage_http::routes::Routes;
use tokio::sync::watch;

use crate::cookies::Cookies;
use crate::delegates::Delegates;
use crate::metrics::Metrics;
use crate::replay_guard::ReplayGuard;

/// State that all exchanges share.
pub struct Shared {
    /// Routes of requests.
    pub routes: Routes<Infallible>,
    /// Metrics.
    pub metrics: Metrics,
    /// Access log.
    pub log: AccessLog,
    /// Senders from the balancers' addresses.
    pub delegates: Delegates,
    /// Cookies of balancers.
    pub cookies: Option<Cookies>,
    /// Packet numbers that must not be granted again.
    pub replay_guard: ReplayGuard,
    /// Congestion control.
    pub congestion: Congestion,
    /// Becomes true when the server shuts down.
    pub ending: watch::Receiver<bool>,
}
