//! The page for Prometheus.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::control::Control;
use crate::counts::{Counts, Outcome};

/// Everything, in Prometheus' text format.
pub fn page(control: &Control, workers: &[Arc<Counts>]) -> String {
    let mut page = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, u64)]| {
        let name = format!("frontage_dispatcher_{name}");
        let mut line =
            |text: std::fmt::Arguments<'_>| writeln!(page, "{text}").expect("a String takes it");
        line(format_args!("# HELP {name} {help}"));
        line(format_args!("# TYPE {name} {kind}"));
        for (labels, value) in samples {
            line(format_args!("{name}{labels} {value}"));
        }
    };
    let sum = |counter: fn(&Counts) -> &AtomicU64| {
        let all = workers.iter().map(|counts| counter(counts).load(Relaxed));
        vec![(String::new(), all.sum())]
    };
    let outcomes: Vec<_> = Outcome::all()
        .map(|outcome| {
            let (what, why) = outcome.names();
            let labels = format!("{{outcome=\"{what}\",reason=\"{why}\"}}");
            (
                labels,
                workers.iter().map(|counts| counts.of(outcome)).sum(),
            )
        })
        .collect();
    family(
        "datagrams_total",
        "counter",
        "Datagrams out of tunnels, by what became of them.",
        &outcomes,
    );
    for (name, help, samples) in [
        (
            "sent_packets_total",
            "Packets into tunnels.",
            sum(|c| &c.sent),
        ),
        (
            "unsent_packets_total",
            "Packets that the system did not take.",
            sum(|c| &c.unsent),
        ),
        (
            "evicted_flights_total",
            "Unfinished first flights that gave way to others.",
            sum(|c| &c.evicted),
        ),
        (
            "ech_flights_total",
            "First flights with what looks like an encrypted ClientHello.",
            sum(|c| &c.ech),
        ),
    ] {
        family(name, "counter", help, &samples);
    }
    family(
        "unfinished_flights",
        "gauge",
        "First flights whose service is not yet known.",
        &sum(|c| &c.unfinished),
    );
    let one = |value: usize| vec![(String::new(), value as u64)];
    family(
        "replicas",
        "gauge",
        "Replicas, those that do not accept among them.",
        &one(control.replicas().len()),
    );
    let dropped = vec![(String::new(), control.dropped_measurements())];
    family(
        "dropped_measurements_total",
        "counter",
        "Measurements that found no room.",
        &dropped,
    );
    page
}
