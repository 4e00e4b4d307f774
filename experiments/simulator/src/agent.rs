// SPDX-License-Identifier: Apache-2.0
//! CCLB7's agent (CloudCookie, section IV-A; docs/cookie.md). It writes cookies with a server's signals into packets, and restores the
//! server's own timestamps where clients echo a cookie.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use frontage_cookie::cid;
use frontage_cookie::ipv6::{Cookie, Key, NONCE_MAX};
use frontage_cookie::load::{Loads, Response, rpt_us};
use frontage_cookie::quant::{IPV6, RPT_UNIT_US};
use frontage_cookie::tcp::{Signals, encode_dynamic};
use frontage_transport::tcp::{Flags, Segment};
use softswitch_pipeline::Nanos;

use crate::frame::{Body, ConnectionId};
use crate::scenario::{self, Rank};

/// The agent of a server: its loads, and the means to signal them.
pub struct Agent {
    sid: u16,
    /// Key for QUIC's cookies and connection ids.
    key: Option<Box<Key>>,
    /// Number of issued connection ids.
    issued_ids: u32,
    bandwidth: u64,
    cookie: bool,
    rank: Rank,
    loads: Arc<Loads>,
}

/// Pairs of a time and the RPT in microseconds to signal from then on, in order of time.
pub type RptSchedule = Arc<[(Nanos, u64)]>;

/// The responses of a connection, as the agent sees them.
#[derive(Debug, Default)]
pub struct Responses {
    /// Responses that are not completely sent, in the order of sending.
    unfinished: Vec<Response>,
    /// Stream offset of the end of the last response.
    end: u64,
    sent: u64,
    /// Sequence number of the SYN.
    initial: u32,
    /// RPT to signal instead of the remaining bytes.
    rpt_schedule: Option<RptSchedule>,
    echoes: TimestampEchoes,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key must stay secret.
        f.debug_struct("Agent")
            .field("sid", &self.sid)
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// Creates the agent of an idle server.
    pub fn new(server: &scenario::Server) -> Self {
        Self {
            sid: server.sid,
            key: server.key.as_ref().map(|key| Box::new(key.ipv6())),
            issued_ids: 0,
            bandwidth: server.bandwidth,
            cookie: server.cookie,
            rank: server.rank,
            loads: Arc::new(Loads::new(server.look_ahead)),
        }
    }

    /// Returns the loads of the server.
    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    /// Starts a response of `bytes` bytes after the earlier ones. `rpt` replaces its real RPT.
    pub fn begin(&self, responses: &mut Responses, bytes: u64, rpt: Option<RptSchedule>) {
        responses.rpt_schedule = rpt;
        responses.end += bytes;
        let mut response = Response::new(self.loads.clone(), Some(responses.end));
        response.on_sent(responses.sent);
        responses.unfinished.reserve_exact(1);
        responses.unfinished.push(response);
    }

    /// Writes the cookie into a packet, and returns the packet's rank.
    ///
    /// The cookie goes into the TSval of a segment, or into the source address of a datagram. `sent` counts the bytes of the connection
    /// including this packet, and `unanswered` the bytes of responses that have not started.
    pub fn outgoing(
        &self,
        responses: &mut Responses,
        sent: u64,
        unanswered: u64,
        body: &mut Body,
        from: &mut SocketAddr,
        now: Nanos,
    ) -> u32 {
        // The payload of this packet still counts as remaining, but the last packet no longer counts as load.
        let remaining = match (self.rank, &*body) {
            (Rank::Segment, Body::Tcp { segment, .. }) => {
                responses.bytes_to_end(segment, sent) + unanswered
            }
            _ => responses.unfinished.last().map_or(0, Response::remaining),
        };
        let rpt_us = responses
            .scheduled_rpt(now)
            .unwrap_or_else(|| rpt_us(remaining, self.bandwidth));
        responses.send(sent);
        if self.cookie {
            self.write_cookie(responses, body, from, rpt_us);
        }
        match self.rank {
            Rank::Unsent => IPV6.encode(rpt_us / RPT_UNIT_US),
            Rank::Segment => u32::try_from(remaining).unwrap_or(u32::MAX),
        }
    }

    fn write_cookie(
        &self,
        responses: &mut Responses,
        body: &mut Body,
        from: &mut SocketAddr,
        rpt_us: u64,
    ) {
        let signals = Signals {
            rpt_us,
            n_af: self.loads.n_af(),
            n_ff: self.loads.n_ff(),
        };
        match (body, from.ip(), &self.key) {
            (Body::Tcp { segment, ck }, _, _) => {
                if let Some(ts) = segment.ts.as_mut() {
                    let kernel_ts = ts.val;
                    ts.val = encode_dynamic(kernel_ts, signals);
                    *ck = true;
                    responses.echoes.sent(segment, kernel_ts);
                }
            }
            (Body::Quic(_), IpAddr::V6(address), Some(key)) => {
                let cookie = Cookie {
                    sid: self.sid,
                    expects_cookie_address: false,
                    signals: Some(signals),
                };
                let prefix = address.to_bits() >> 64 << 64;
                from.set_ip(Ipv6Addr::from_bits(prefix | u128::from(key.seal(&cookie))).into());
            }
            // IPv4 addresses have no space for loads.
            (Body::Quic(_), _, _) => {}
        }
    }

    /// Restores the kernel's own timestamp in a received segment.
    pub fn incoming(&self, responses: &mut Responses, body: &mut Body) {
        if let (true, Body::Tcp { segment, .. }) = (self.cookie, body)
            && let Some(ts) = segment.ts.as_mut()
        {
            ts.ecr = responses.echoes.acknowledged(segment.ack);
        }
    }

    /// Returns a QUIC connection id that names this server, sealed if there is a key.
    pub fn connection_id(&mut self, random: u64) -> ConnectionId {
        self.issued_ids = self.issued_ids % NONCE_MAX + 1;
        let bytes = random.to_be_bytes();
        match &self.key {
            Some(key) => cid::sealed(
                key,
                self.sid,
                self.issued_ids,
                [bytes[0], bytes[1], bytes[2]],
            ),
            None => {
                let mut nonce = [0; 9];
                nonce[..8].copy_from_slice(&bytes);
                cid::plain(self.sid, nonce)
            }
        }
    }
}

impl Responses {
    /// Returns the RPT to signal now instead of the remaining bytes.
    fn scheduled_rpt(&self, now: Nanos) -> Option<u64> {
        let rpt = self.rpt_schedule.as_ref()?;
        let (_, rpt_us) = rpt[..rpt.partition_point(|&(from, _)| from <= now)].last()?;
        Some(*rpt_us)
    }

    /// Returns the number of bytes from the start of a segment to the end of the last response. `sent` includes this segment.
    fn bytes_to_end(&mut self, segment: &Segment, sent: u64) -> u64 {
        if segment.flags.has(Flags::SYN) {
            self.initial = segment.seq;
            return 0;
        }
        // Sequence numbers wrap every 4 GiB; less than that is in flight.
        let next = self.initial.wrapping_add(1).wrapping_add(sent as u32);
        let before = sent.saturating_sub(u64::from(next.wrapping_sub(segment.seq)));
        self.end - before.min(self.end)
    }

    /// Notes that `bytes` bytes have been sent in total.
    fn send(&mut self, bytes: u64) {
        if bytes > self.sent {
            self.sent = bytes;
            self.unfinished.retain_mut(|response| {
                response.on_sent(bytes);
                response.remaining() > 0
            });
        }
    }
}

/// Returns a timestamp without its cookie. Such timestamps never decrease (docs/cookie.md, "Why only the static form leaves").
pub fn mask(dynamic: u32) -> u32 {
    dynamic & 0xffff_0000
}

/// Tracks which of the kernel's timestamps the client would echo.
///
/// An acknowledgment that advances past a byte echoes the first segment that contained it (RFC 7323, section 4.3). Retransmitted segments
/// give no information, as without timestamps (RFC 6298, section 3).
#[derive(Debug, Clone, Default)]
struct TimestampEchoes {
    /// First sequence number of each timestamp, in order.
    first: VecDeque<(u32, u32)>,
    /// Next sequence number.
    next: Option<u32>,
    /// Retransmitted ranges: first sequence number, and the one after the last.
    retransmitted: VecDeque<(u32, u32)>,
    acknowledged: Option<u32>,
    last: u32,
}

impl TimestampEchoes {
    fn sent(&mut self, segment: &Segment, ts: u32) {
        let end = segment.seq.wrapping_add(segment.sequence_length());
        if self.next.is_some_and(|next| before(segment.seq, next)) {
            match self.retransmitted.back_mut() {
                Some((_, last)) if *last == segment.seq => *last = end,
                _ => self.retransmitted.push_back((segment.seq, end)),
            }
        }
        if self.next.is_none_or(|next| before(next, end)) {
            self.next = Some(end);
            if self.first.back().is_none_or(|&(_, last)| last != ts) {
                self.first.push_back((segment.seq, ts));
            }
        }
        if segment.flags.has(Flags::SYN) {
            self.acknowledged = Some(segment.seq);
            self.last = ts;
        }
    }

    fn acknowledged(&mut self, ack: u32) -> u32 {
        let Some(previous) = self.acknowledged.filter(|&previous| before(previous, ack)) else {
            return self.last;
        };
        self.acknowledged = Some(ack);
        self.retransmitted.retain(|&(_, end)| before(previous, end));
        if self
            .retransmitted
            .iter()
            .any(|&(start, _)| !before(previous, start))
        {
            return 0;
        }
        while self
            .first
            .get(1)
            .is_some_and(|&(seq, _)| !before(previous, seq))
        {
            self.first.pop_front();
        }
        self.last = self.first.front().map_or(0, |&(_, ts)| ts);
        self.last
    }
}

/// Returns true if sequence number `a` precedes `b`.
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests;
