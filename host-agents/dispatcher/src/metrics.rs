// SPDX-License-Identifier: Apache-2.0
//! The Prometheus metrics.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_daemon::metrics::{Families, Registry, registry};

use crate::control::ControlPlane;
use crate::outcome::{Counters, Outcome};

/// Creates a registry that reads `control` and the counters of all `workers` at each scrape.
pub fn new_registry(control: Arc<ControlPlane>, workers: Arc<[Arc<Counters>]>) -> Registry {
    registry("frontage_dispatcher", move |families| {
        collect(families, &control, &workers)
    })
}

fn collect(
    families: &mut Families<'_>,
    control: &ControlPlane,
    workers: &[Arc<Counters>],
) -> fmt::Result {
    let sum = |counter: fn(&Counters) -> &AtomicU64| -> u64 {
        let values = workers
            .iter()
            .map(|counters| counter(counters).load(Relaxed));
        values.sum()
    };
    families.counters(
        "datagrams",
        "Datagrams received from tunnels, by outcome.",
        Outcome::all().map(|outcome| {
            let (label, reason) = outcome.labels();
            let count: u64 = workers.iter().map(|counters| counters.get(outcome)).sum();
            ([("outcome", label), ("reason", reason)], count)
        }),
    )?;
    families.counter(
        "sent_packets",
        "Packets sent into tunnels.",
        sum(|counters| &counters.sent),
    )?;
    families.counter(
        "unsent_packets",
        "Packets that the system did not accept for sending.",
        sum(|counters| &counters.unsent),
    )?;
    families.counter(
        "evicted_flights",
        "Unfinished first flights evicted for newer ones.",
        sum(|counters| &counters.evicted),
    )?;
    families.counter(
        "ech_flights",
        "First flights that seem to contain an encrypted ClientHello.",
        sum(|counters| &counters.ech),
    )?;
    families.gauge(
        "unfinished_flights",
        "First flights whose service is not known yet.",
        sum(|counters| &counters.unfinished),
    )?;
    families.gauge(
        "replicas",
        "Registered replicas, including those that do not accept connections.",
        control.replicas().len() as u64,
    )?;
    families.counter(
        "dropped_measurements",
        "Measurements dropped because the store was full.",
        control.dropped_measurements(),
    )
}
