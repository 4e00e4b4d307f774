//! The Prometheus metrics.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_daemon::metrics::{Families, Registry, registry};

use crate::control::Control;
use crate::counts::{Counts, Outcome};

/// Return a registry that reads `control` and the counters of all `workers` at each scrape.
pub fn new(control: Arc<Control>, workers: Arc<[Arc<Counts>]>) -> Registry {
    registry("frontage_dispatcher", move |families| {
        collect(families, &control, &workers)
    })
}

fn collect(families: &mut Families<'_>, control: &Control, workers: &[Arc<Counts>]) -> fmt::Result {
    let sum = |counter: fn(&Counts) -> &AtomicU64| -> u64 {
        let all = workers.iter().map(|counts| counter(counts).load(Relaxed));
        all.sum()
    };
    families.counters(
        "datagrams",
        "Datagrams out of tunnels, by what became of them.",
        Outcome::all().map(|outcome| {
            let (what, why) = outcome.names();
            let count: u64 = workers.iter().map(|counts| counts.of(outcome)).sum();
            ([("outcome", what), ("reason", why)], count)
        }),
    )?;
    families.counter("sent_packets", "Packets into tunnels.", sum(|c| &c.sent))?;
    families.counter(
        "unsent_packets",
        "Packets that the system did not take.",
        sum(|c| &c.unsent),
    )?;
    families.counter(
        "evicted_flights",
        "Unfinished first flights that gave way to others.",
        sum(|c| &c.evicted),
    )?;
    families.counter(
        "ech_flights",
        "First flights with what looks like an encrypted ClientHello.",
        sum(|c| &c.ech),
    )?;
    families.gauge(
        "unfinished_flights",
        "First flights whose service is not yet known.",
        sum(|c| &c.unfinished),
    )?;
    families.gauge(
        "replicas",
        "Replicas, those that do not accept among them.",
        control.replicas().len() as u64,
    )?;
    families.counter(
        "dropped_measurements",
        "Measurements that found no room.",
        control.dropped_measurements(),
    )
}
