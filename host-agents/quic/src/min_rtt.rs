// SPDX-License-Identifier: Apache-2.0
//! Minimum round-trip time of a path (RFC 9002, section 5.2), which noq shows only to congestion controllers.
//!
//! noq's own estimate is smoothed. The first sample contains the delay of an acknowledgment, so it takes many more until the
//! estimate is close to the path's round-trip time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use noq::congestion::{Controller, ControllerFactory};
use noq::{Connection, PathId};
use noq_proto::RttEstimator;

use crate::adjusted::{Adjusted, Adjustment};

/// Creates controllers that keep the minimum round-trip time for [`min_rtt`].
pub struct KeepMinRtt<F: ?Sized>(Arc<F>);

impl<F: ?Sized> KeepMinRtt<F> {
    /// Create a factory of controllers over those of `inner`.
    pub fn new(inner: Arc<F>) -> Self {
        Self(inner)
    }
}

impl<F: ControllerFactory + ?Sized> ControllerFactory for KeepMinRtt<F> {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Adjusted::new(self.0.clone().build(now, mtu), MinRtt(None)))
    }
}

/// The minimum round-trip time, if there is a sample.
#[derive(Clone, Debug)]
struct MinRtt(Option<Duration>);

impl Adjustment for MinRtt {
    fn on_ack(&mut self, rtt: &RttEstimator) {
        self.0 = Some(rtt.min());
    }
}

/// Return the minimum round-trip time of a path; `None` before the first acknowledgment, after the path has ended, or if the
/// connection's controllers are not those of [`KeepMinRtt`].
pub fn min_rtt(connection: &Connection, path: PathId) -> Option<Duration> {
    let controller = connection.congestion_state(path)?.into_any();
    let controller = controller.downcast::<Adjusted<MinRtt>>().ok()?;
    controller.adjustment().0
}
