// SPDX-License-Identifier: Apache-2.0
//! CCLB7's agent (CloudCookie, section IV-A; docs/cookie.md): the signals of a server's connections, the cookie that carries them, and the
//! server's own timestamps put back where clients echo the cookie.

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

/// A server's loads, and how it tells them.
pub struct Agent {
    sid: u16,
    /// Seals what QUIC carries.
    key: Option<Box<Key>>,
    /// Connection ids given out.
    ids: u32,
    bandwidth: u64,
    cookie: bool,
    rank: Rank,
    loads: Arc<Loads>,
}

/// Pairs of a time and the RPT in microseconds to signal from then on, in order of time.
pub type GivenRpt = Arc<[(Nanos, u64)]>;

/// The agent's state of a connection.
#[derive(Debug, Default)]
pub struct Responses {
    /// Those not sent whole, one behind the other on a stream.
    under_way: Vec<Response>,
    /// Where the last one ends or ended.
    expected: u64,
    sent: u64,
    /// The sequence number of the SYN.
    initial: u32,
    /// RPT to signal instead of the number of bytes left.
    given: Option<GivenRpt>,
    echoes: Echoes,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys are not for eyes.
        f.debug_struct("Agent")
            .field("sid", &self.sid)
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// An idle server's.
    pub fn new(server: &scenario::Server) -> Self {
        Self {
            sid: server.sid,
            key: server.key.as_ref().map(|key| Box::new(key.ipv6())),
            ids: 0,
            bandwidth: server.bandwidth,
            cookie: server.cookie,
            rank: server.rank,
            loads: Arc::new(Loads::new(server.look_ahead)),
        }
    }

    /// The server's loads.
    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    /// Starts a response of `bytes` bytes, behind earlier ones. `rpt` replaces the RPT that the response needs.
    pub fn begin(&self, responses: &mut Responses, bytes: u64, rpt: Option<GivenRpt>) {
        responses.given = rpt;
        responses.expected += bytes;
        let mut response = Response::new(self.loads.clone(), Some(responses.expected));
        response.on_sent(responses.sent);
        responses.under_way.reserve_exact(1);
        responses.under_way.push(response);
    }

    /// Writes the cookie into what leaves, with which the connection has `sent` so many bytes in all: into a segment's TSval, or into the
    /// address that a datagram comes from. Of responses that have not begun so many bytes are `asked`. Gives its rank.
    pub fn outgoing(
        &self,
        responses: &mut Responses,
        sent: u64,
        asked: u64,
        body: &mut Body,
        from: &mut SocketAddr,
        now: Nanos,
    ) -> u32 {
        // The payload of this packet still counts as remaining, but the last packet no longer counts as load.
        let remaining = match (self.rank, &*body) {
            (Rank::Segment, Body::Tcp { segment, .. }) => responses.behind(segment, sent) + asked,
            _ => responses.under_way.last().map_or(0, Response::remaining),
        };
        let rpt_us = responses
            .given(now)
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
                    let kernels = ts.val;
                    ts.val = encode_dynamic(kernels, signals);
                    *ck = true;
                    responses.echoes.sent(segment, kernels);
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
            // IPv4 has no room for loads.
            (Body::Quic(_), _, _) => {}
        }
    }

    /// Puts the kernel's own timestamp back into a segment that has come in.
    pub fn incoming(&self, responses: &mut Responses, body: &mut Body) {
        if let (true, Body::Tcp { segment, .. }) = (self.cookie, body)
            && let Some(ts) = segment.ts.as_mut()
        {
            ts.ecr = responses.echoes.acknowledged(segment.ack);
        }
    }

    /// A QUIC connection id that names this server, sealed if there is a key.
    pub fn connection_id(&mut self, random: u64) -> ConnectionId {
        self.ids = self.ids % NONCE_MAX + 1;
        let bytes = random.to_be_bytes();
        match &self.key {
            Some(key) => cid::sealed(key, self.sid, self.ids, [bytes[0], bytes[1], bytes[2]]),
            None => {
                let mut nonce = [0; 9];
                nonce[..8].copy_from_slice(&bytes);
                cid::plain(self.sid, nonce)
            }
        }
    }
}

impl Responses {
    /// Returns the RPT to signal now instead of the number of bytes left.
    fn given(&self, now: Nanos) -> Option<u64> {
        let rpt = self.given.as_ref()?;
        let (_, given) = rpt[..rpt.partition_point(|&(from, _)| from <= now)].last()?;
        Some(*given)
    }

    /// The bytes from a segment, with which so many are `sent` in all, to the end of the last response.
    fn behind(&mut self, segment: &Segment, sent: u64) -> u64 {
        if segment.flags.has(Flags::SYN) {
            self.initial = segment.seq;
            return 0;
        }
        // Sequence numbers begin anew every 4 GiB; less than that is under way.
        let next = self.initial.wrapping_add(1).wrapping_add(sent as u32);
        let before = sent.saturating_sub(u64::from(next.wrapping_sub(segment.seq)));
        self.expected - before.min(self.expected)
    }

    /// So many bytes are sent in all.
    fn send(&mut self, bytes: u64) {
        if bytes > self.sent {
            self.sent = bytes;
            self.under_way.retain_mut(|response| {
                response.on_sent(bytes);
                response.remaining() > 0
            });
        }
    }
}

/// A timestamp without the cookie in it, which only grows (docs/cookie.md, "Why only the static form leaves").
pub fn mask(dynamic: u32) -> u32 {
    dynamic & 0xffff_0000
}

/// Tracks which of the kernel's timestamps the client would echo.
///
/// An acknowledgment that advances past a byte echoes the first segment that contained it (RFC 7323, section 4.3). Retransmitted segments
/// give no information, as without timestamps (RFC 6298, section 3).
#[derive(Debug, Clone, Default)]
struct Echoes {
    /// The first sequence number of each timestamp, in order.
    first: VecDeque<(u32, u32)>,
    /// Next sequence number.
    next: Option<u32>,
    /// Retransmitted ranges: first sequence number, and the one after the last.
    repeated: VecDeque<(u32, u32)>,
    acknowledged: Option<u32>,
    last: u32,
}

impl Echoes {
    fn sent(&mut self, segment: &Segment, ts: u32) {
        let end = segment.seq.wrapping_add(segment.sequence_length());
        if self.next.is_some_and(|next| before(segment.seq, next)) {
            match self.repeated.back_mut() {
                Some((_, last)) if *last == segment.seq => *last = end,
                _ => self.repeated.push_back((segment.seq, end)),
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
        self.repeated.retain(|&(_, end)| before(previous, end));
        if self
            .repeated
            .iter()
            .any(|&(begin, _)| !before(previous, begin))
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
