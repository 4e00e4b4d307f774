// SPDX-License-Identifier: Apache-2.0
//! Congestion controllers that adjust another controller.

use std::any::Any;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use noq::congestion::{Controller, ControllerMetrics};
use noq_proto::RttEstimator;

/// Adjustment of what a controller tells noq. By default, noq sees the inner controller.
pub trait Adjustment: Clone + Debug + Send + Sync + 'static {
    /// A packet was acknowledged.
    fn on_ack(&mut self, rtt: &RttEstimator);

    /// The path MTU is now `mtu`, in bytes of UDP payload.
    fn on_mtu_update(&mut self, _mtu: u16) {}

    /// Return the congestion window in bytes if that of the inner controller is `inner`.
    fn window(&self, inner: u64) -> u64 {
        inner
    }

    /// Return the metrics of the controller over `inner`.
    fn metrics(&self, inner: &dyn Controller) -> ControllerMetrics {
        inner.metrics()
    }
}

/// A controller with an adjustment.
#[derive(Debug)]
pub struct Adjusted<A> {
    inner: Box<dyn Controller>,
    adjustment: A,
}

impl<A> Adjusted<A> {
    /// Create a controller over `inner`.
    pub fn new(inner: Box<dyn Controller>, adjustment: A) -> Self {
        Self { inner, adjustment }
    }

    /// Return the adjustment.
    pub fn adjustment(&self) -> &A {
        &self.adjustment
    }
}

impl<A: Adjustment> Controller for Adjusted<A> {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_number: u64) {
        self.inner.on_sent(now, bytes, largest_number);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        self.inner.on_packet_sent(now, bytes, number);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        number: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.adjustment.on_ack(rtt);
        self.inner
            .on_ack(now, sent, bytes, number, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_acknowledged: Option<u64>,
    ) {
        self.inner
            .on_end_acks(now, in_flight, app_limited, largest_acknowledged);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost: u64,
    ) {
        self.inner
            .on_congestion_event(now, sent, is_persistent, is_ecn, lost_bytes, largest_lost);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, number: u64, now: Instant) {
        self.inner.on_packet_lost(lost_bytes, number, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.adjustment.on_mtu_update(mtu);
        self.inner.on_mtu_update(mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, max_ack_delay: Duration) {
        self.inner.on_ack_frequency_update(threshold, max_ack_delay);
    }

    fn window(&self) -> u64 {
        self.adjustment.window(self.inner.window())
    }

    fn metrics(&self) -> ControllerMetrics {
        self.adjustment.metrics(&*self.inner)
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            adjustment: self.adjustment.clone(),
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
