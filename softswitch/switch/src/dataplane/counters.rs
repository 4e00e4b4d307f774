// SPDX-License-Identifier: Apache-2.0
//! Counters of packets, by port and by cause of a drop.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that the data plane increments and others read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        if n != 0 {
            self.0.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Sets the value, for events that are counted elsewhere.
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// Returns the value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The value of a counter, with the metric that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Name of the metric, without prefix and `_total`.
    pub metric: &'static str,
    /// Description of the metric.
    pub help: &'static str,
    /// Label `cause` of a drop counter.
    pub cause: Option<&'static str>,
    /// The value.
    pub value: u64,
}

/// Defines a set of counters: each is a metric of its own, or belongs to the metric `drops` with a label `cause`.
macro_rules! counters {
    ($(#[$doc:meta])* $name:ident {
        $(#[doc = $help:literal] $field:ident = $metric:literal,)*
        drops {
            $(#[doc = $drop_help:literal] $drop:ident = $cause:literal,)*
        }
    }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $name {
            $(#[doc = $help] pub $field: Counter,)*
            $(#[doc = $drop_help] pub $drop: Counter,)*
        }

        impl $name {
            /// Returns the values of all counters.
            pub fn samples(&self) -> impl Iterator<Item = Sample> {
                [
                    $(Sample {
                        metric: $metric,
                        help: $help.trim_matches([' ', '.']),
                        cause: None,
                        value: self.$field.get(),
                    },)*
                    $(Sample {
                        metric: "drops",
                        help: "Packets dropped, by cause",
                        cause: Some($cause),
                        value: self.$drop.get(),
                    },)*
                ]
                .into_iter()
            }
        }
    };
}

counters! {
    /// Counters of one port.
    PortCounters {
        /// Packets received.
        rx_packets = "rx_packets",
        /// Bytes received.
        rx_bytes = "rx_bytes",
        /// Packets sent.
        tx_packets = "tx_packets",
        /// Bytes sent.
        tx_bytes = "tx_bytes",
        drops {
            /// Received packets that the kernel dropped because they were not taken in time.
            rx_kernel = "rx_kernel",
            /// Received packets dropped because there is no program.
            no_pipeline = "no_pipeline",
            /// Received packets that are too long for the pipeline.
            rx_too_long = "rx_too_long",
            /// Received packets that ingress dropped.
            ingress = "ingress",
            /// Received packets for a multicast group that is empty or does not exist.
            empty_group = "empty_group",
            /// Received packets that were resubmitted too often.
            resubmit_limit = "resubmit_limit",
            /// Packets with too many loop iterations.
            iteration_limit = "iteration_limit",
            /// Received packets that the parser of a program for TNA rejected.
            parser_error = "parser_error",
            /// Packets for which an `assert` or `assume` did not hold.
            assertion = "assertion",
            /// Tail drops: packets to this port that found its queue full.
            tail_drop = "tail_drop",
            /// Packets to this port that egress dropped.
            egress = "egress",
            /// Packets to this port lost on its link.
            link_loss = "link_loss",
            /// Packets to this port longer than its MTU.
            too_long = "too_long",
            /// Packets to this port that its interface did not accept.
            tx_busy = "tx_busy",
            /// Packets to this port while its interface was down.
            port_down = "port_down",
        }
    }
}

counters! {
    /// Counters of the whole switch.
    SwitchCounters {
        /// Packets sent by controllers.
        packet_out = "packet_out",
        /// Packets sent to controllers.
        packet_in = "packet_in",
        /// Digests dropped because the control plane was too slow.
        digest_dropped = "digest_dropped",
        /// Passes of packets whose trace could not be written.
        trace_lost = "trace_lost",
        /// Packets recirculated.
        recirculated = "recirculated",
        /// Programs committed.
        programs = "programs",
        drops {
            /// Packets dropped because the controller was too slow or missing.
            packet_in_dropped = "packet_in",
            /// Packets to a port that does not exist.
            no_such_port = "no_such_port",
        }
    }
}
