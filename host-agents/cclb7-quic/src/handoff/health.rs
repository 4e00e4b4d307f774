// SPDX-License-Identifier: Apache-2.0
//! Health checks of real servers: requests to their HTTP/1.1 origins.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use frontage_http::Proxy;
use frontage_http::body::RequestBody;
use http::{Request, Uri};
use tokio::task::AbortHandle;

use super::config::Health as Config;

/// State of one real server, which a task updates.
#[derive(Debug)]
pub struct Health {
    state: Arc<State>,
    task: Option<AbortHandle>,
}

#[derive(Debug)]
struct State {
    is_healthy: AtomicBool,
    failed: AtomicU64,
}

impl Health {
    /// Start the checks of `origin`. Without a configuration, the server counts as healthy. Must be called within a Tokio
    /// runtime.
    pub fn start(config: Option<&Config>, proxy: &Proxy, name: &str, origin: &Uri) -> Self {
        let state = Arc::new(State {
            is_healthy: AtomicBool::new(true),
            failed: AtomicU64::new(0),
        });
        let task = config.map(|config| {
            let check = Check {
                config: config.clone(),
                proxy: proxy.clone(),
                name: name.to_owned(),
                origin: origin.clone(),
            };
            tokio::spawn(check.run(state.clone())).abort_handle()
        });
        Self { state, task }
    }

    /// Return whether the latest checks were successful.
    pub fn is_healthy(&self) -> bool {
        self.state.is_healthy.load(Relaxed)
    }

    /// Return the number of failed checks.
    pub fn failed(&self) -> u64 {
        self.state.failed.load(Relaxed)
    }
}

impl Drop for Health {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

struct Check {
    config: Config,
    proxy: Proxy,
    name: String,
    origin: Uri,
}

impl Check {
    async fn run(self, state: Arc<State>) {
        let interval = Duration::from_millis(self.config.interval_ms);
        // Results in a row that contradict the state.
        let mut contrary = 0;
        loop {
            let is_success = tokio::time::timeout(interval, self.succeeds()).await == Ok(true);
            if !is_success {
                state.failed.fetch_add(1, Relaxed);
            }
            let is_healthy = state.is_healthy.load(Relaxed);
            contrary = if is_success == is_healthy {
                0
            } else {
                contrary + 1
            };
            let needed = match is_healthy {
                true => self.config.failures,
                false => self.config.successes,
            };
            if contrary >= needed {
                contrary = 0;
                state.is_healthy.store(is_success, Relaxed);
                let text = if is_success {
                    "healthy again"
                } else {
                    "unhealthy"
                };
                tracing::warn!("{}: {text} according to {}", self.name, self.config.path);
            }
            tokio::time::sleep(interval).await;
        }
    }

    async fn succeeds(&self) -> bool {
        let request = Request::get(self.config.path.as_str());
        let Ok(request) = request.body(RequestBody::whole(Bytes::new())) else {
            return false;
        };
        let client = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let response = self.proxy.forward(&self.origin, client, request).await;
        response.status().as_u16() < 400
    }
}
