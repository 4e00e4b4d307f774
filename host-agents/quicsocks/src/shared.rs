// SPDX-License-Identifier: Apache-2.0
//! State that all associations of a proxy share.

use std::sync::Arc;
use std::time::Duration;

use frontage_first_flight::Reader;

use crate::config::User;
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::quota::Quotas;
use crate::resolve::RecursiveResolver;

/// State that all associations share.
pub struct Shared {
    pub users: Vec<User>,
    pub policy: Policy,
    pub resolver: RecursiveResolver,
    pub quotas: Arc<Quotas>,
    pub limits: Limits,
    pub metrics: Arc<Metrics>,
    pub reader: Reader,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared(..)")
    }
}

/// Limits of flows and associations.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum lifetime of a flow.
    pub flow_lifetime: Duration,
    /// Idle timeout of a flow.
    pub idle_timeout: Duration,
    /// Maximum number of flows of an association.
    pub max_flows: usize,
}
