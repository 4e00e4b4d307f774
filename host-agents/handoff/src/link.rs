// SPDX-License-Identifier: Apache-2.0
//! The link over which a balancer and a real server exchange [messages](crate::message): a QUIC connection with mutual
//! authentication, dialled by the balancer, with one bidirectional stream for each client connection.

use std::sync::Arc;
use std::time::Duration;

use frontage_quic::min_rtt::KeepMinRtt;
use frontage_quic::pacing::InitialBurst;
use noq::congestion::CubicConfig;
use noq::{AckFrequencyConfig, TransportConfig, VarInt};

mod accept;
mod dial;
mod queue;
mod streams;
pub mod tls;
mod writer;

pub use accept::serve;
pub use dial::{Counters, Link};
pub use streams::{Inbox, LinkError, Outbox};

/// Time without a packet after which a peer counts as dead (QDSR, section 6.2: heartbeats).
const IDLE_TIMEOUT: Duration = Duration::from_millis(900);
/// Interval of heartbeats (PING) without other packets. Three may be lost.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(225);
/// Maximum number of client connections that share a link.
const MAX_STREAMS: u32 = 1 << 17;
/// Flow-control window of one stream in bytes.
const STREAM_WINDOW: u32 = 1 << 20;
/// Number of packets per ACK, if they arrive soon enough (draft-ietf-quic-ack-frequency).
const ACK_ELICITING_THRESHOLD: u32 = 10;
/// Initial RTT estimate. Both ends are in one operator's network, so a lost first packet should be retransmitted soon.
const INITIAL_RTT: Duration = Duration::from_millis(50);

fn transport() -> TransportConfig {
    let mut config = TransportConfig::default();
    let controllers = InitialBurst::new(CubicConfig::default());
    let mut acknowledgements = AckFrequencyConfig::default();
    acknowledgements.ack_eliciting_threshold(ACK_ELICITING_THRESHOLD.into());
    let idle_timeout = IDLE_TIMEOUT.try_into().expect("less than 2^62 ms");
    config
        .max_idle_timeout(Some(idle_timeout))
        .keep_alive_interval(Some(HEARTBEAT_INTERVAL))
        .initial_rtt(INITIAL_RTT)
        .congestion_controller_factory(Arc::new(KeepMinRtt::new(Arc::new(controllers))))
        .ack_frequency_config(Some(acknowledgements))
        .max_concurrent_bidi_streams(MAX_STREAMS.into())
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(VarInt::MAX);
    config
}
