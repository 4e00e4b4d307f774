//! What happened to packets, counted by port and cause.

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

    /// Sets the value, for what is counted elsewhere.
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// The value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $help:literal])* $field:ident = $metric:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $name {$(
            $(#[doc = $help])*
            pub $field: Counter,
        )*}

        impl $name {
            /// Name, labels (`name{label="x"}`) and value of each counter.
            pub fn list(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($metric, self.$field.get())),*].into_iter()
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
        /// Received packets that the kernel dropped since they were not taken in time.
        rx_kernel = "drops{cause=\"rx_kernel\"}",
        /// Received packets dropped since there is no program.
        no_pipeline = "drops{cause=\"no_pipeline\"}",
        /// Received packets longer than the pipeline takes.
        rx_too_long = "drops{cause=\"rx_too_long\"}",
        /// Received packets that ingress dropped.
        ingress = "drops{cause=\"ingress\"}",
        /// Received packets for a multicast group that is empty or does not exist.
        empty_group = "drops{cause=\"empty_group\"}",
        /// Received packets that were resubmitted too often.
        resubmit_limit = "drops{cause=\"resubmit_limit\"}",
        /// Packets for which an `assert` or `assume` did not hold.
        assertion = "drops{cause=\"assertion\"}",
        /// Packets to this port for which its queue was full.
        queue_full = "drops{cause=\"queue_full\"}",
        /// Packets to this port that egress dropped.
        egress = "drops{cause=\"egress\"}",
        /// Packets to this port lost on its link.
        link_loss = "drops{cause=\"link_loss\"}",
        /// Packets to this port longer than its MTU.
        too_long = "drops{cause=\"too_long\"}",
        /// Packets to this port that its interface did not take.
        tx_busy = "drops{cause=\"tx_busy\"}",
        /// Packets to this port while its interface was down.
        port_down = "drops{cause=\"port_down\"}",
    }
}

counters! {
    /// Counters of the whole switch.
    SwitchCounters {
        /// Packets sent by controllers.
        packet_out = "packet_out",
        /// Packets sent to controllers.
        packet_in = "packet_in",
        /// Packets dropped since a controller was too slow or there is none.
        packet_in_dropped = "drops{cause=\"packet_in\"}",
        /// Packets to a port that does not exist.
        no_such_port = "drops{cause=\"no_such_port\"}",
        /// Digests dropped since the control plane was too slow.
        digest_dropped = "digest_dropped",
        /// Passes of packets whose trace could not be written.
        trace_lost = "trace_lost",
        /// Packets recirculated.
        recirculated = "recirculated",
        /// Programs taken into operation.
        programs = "programs",
    }
}
