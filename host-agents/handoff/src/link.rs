//! The auxiliary connection, over which a balancer and a real server exchange [messages](crate::message): QUIC with both sides' certificates
//! checked, dialled by the balancer, with a bidirectional stream for each client's connection.

use std::time::Duration;

use noq::{AckFrequencyConfig, TransportConfig, VarInt};

mod accept;
mod dial;
mod streams;
pub mod tls;
mod writer;

pub use accept::serve;
pub use dial::{Counts, Link};
pub use streams::{Broken, Inbox, Outbox};

/// A peer that says nothing for so long is dead (QDSR, section 6.2: heartbeats).
const DEAD: Duration = Duration::from_millis(900);
/// A heartbeat (PING) leaves after so long without other packets. Three may be lost.
const HEARTBEAT: Duration = Duration::from_millis(225);
/// Most clients' connections that share one auxiliary connection.
const STREAMS: u32 = 1 << 17;
/// Bytes that may be under way on one stream.
const STREAM_WINDOW: u32 = 1 << 20;
/// Packets that are acknowledged together, if they come soon enough (draft-ietf-quic-ack-frequency): most are messages that nobody waits for twice.
const ACK_ELICITING: u32 = 10;
/// Assumed of a link before its first answer: both ends are of one operator's network, and a lost first packet is to be sent again soon.
const FIRST_RTT: Duration = Duration::from_millis(50);

fn transport() -> TransportConfig {
    let mut config = TransportConfig::default();
    let mut acknowledgements = AckFrequencyConfig::default();
    acknowledgements.ack_eliciting_threshold(ACK_ELICITING.into());
    let dead = DEAD.try_into().expect("less than 2^62 ms");
    config
        .max_idle_timeout(Some(dead))
        .keep_alive_interval(Some(HEARTBEAT))
        .initial_rtt(FIRST_RTT)
        .ack_frequency_config(Some(acknowledgements))
        .max_concurrent_bidi_streams(STREAMS.into())
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(VarInt::MAX);
    config
}
