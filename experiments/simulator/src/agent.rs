//! CCLB7's signal logic (CloudCookie, section IV-A; docs/cookie.md): what a server's connections still need, its loads, the cookie
//! that says so, and the server's own timestamps put back where clients echo the cookie.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use frontage_cookie::cid;
use frontage_cookie::ipv6::{Cookie, Key, NONCE_MAX};
use frontage_cookie::quant::{IPV6, RPT_UNIT_US};
use frontage_cookie::tcp::{Signals, encode_dynamic};
use frontage_transport::tcp::{Flags, Segment};

use crate::frame::{Body, ConnectionId};
use crate::scenario;

const BITS: u64 = 8;
const MICROSECONDS: u64 = 1_000_000;

/// A server's loads, and how it tells them.
#[derive(Clone)]
pub struct Agent {
    sid: u16,
    /// Seals what QUIC carries.
    key: Option<Box<Key>>,
    /// Connection ids given out.
    ids: u32,
    look_ahead: u64,
    bandwidth: u64,
    cookie: bool,
    loads: Loads,
}

/// N_AF and N_FF: responses begun and not yet acknowledged whole, and those of them that will take longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loads {
    /// Active flows.
    pub n_af: u64,
    /// Those with more left than the look-ahead.
    pub n_ff: u64,
}

/// What the agent knows of a connection.
#[derive(Debug, Clone, Default)]
pub struct Responses {
    /// Where each response ends that is not acknowledged whole, in bytes of the stream.
    ends: VecDeque<u64>,
    /// Where the last one ends or ended.
    expected: u64,
    acknowledged: u64,
    contribution: Loads,
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
            look_ahead: server.look_ahead,
            bandwidth: server.bandwidth,
            cookie: server.cookie,
            loads: Loads::default(),
        }
    }

    /// The server's loads.
    pub fn loads(&self) -> Loads {
        self.loads
    }

    /// A response of so many bytes begins, behind those that began before.
    pub fn begin(&mut self, responses: &mut Responses, bytes: u64) {
        responses.expected += bytes;
        responses.ends.push_back(responses.expected);
        self.settle(responses);
    }

    /// The client has acknowledged so many bytes in all.
    pub fn acknowledge(&mut self, responses: &mut Responses, bytes: u64) {
        responses.acknowledged = bytes.min(responses.expected);
        while responses
            .ends
            .front()
            .is_some_and(|&end| end <= responses.acknowledged)
        {
            responses.ends.pop_front();
        }
        self.settle(responses);
    }

    /// The connection is gone.
    pub fn close(&mut self, responses: &mut Responses) {
        responses.ends.clear();
        self.settle(responses);
    }

    /// The RPT code on the scale of the IPv6 carrier.
    pub fn rank(&self, responses: &Responses) -> u8 {
        IPV6.encode(self.rpt_us(responses) / RPT_UNIT_US) as u8
    }

    /// Writes the cookie into what leaves: into a segment's TSval, or into the address that a datagram comes from.
    pub fn outgoing(&self, responses: &mut Responses, body: &mut Body, from: &mut SocketAddr) {
        if !self.cookie {
            return;
        }
        let signals = Signals {
            rpt_us: self.rpt_us(responses),
            n_af: self.loads.n_af,
            n_ff: self.loads.n_ff,
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

    fn rpt_us(&self, responses: &Responses) -> u64 {
        let remaining = responses.expected - responses.acknowledged;
        let micros =
            u128::from(remaining * BITS) * u128::from(MICROSECONDS) / u128::from(self.bandwidth);
        u64::try_from(micros).unwrap_or(u64::MAX)
    }

    fn settle(&mut self, responses: &mut Responses) {
        let long = responses.acknowledged + self.look_ahead;
        let now = Loads {
            n_af: responses.ends.len() as u64,
            n_ff: responses
                .ends
                .iter()
                .rev()
                .take_while(|&&end| end > long)
                .count() as u64,
        };
        let before = std::mem::replace(&mut responses.contribution, now);
        self.loads.n_af = self.loads.n_af + now.n_af - before.n_af;
        self.loads.n_ff = self.loads.n_ff + now.n_ff - before.n_ff;
    }
}

/// A timestamp without the cookie in it, which only grows (docs/cookie.md, "Why only the static form leaves").
pub fn mask(dynamic: u32) -> u32 {
    dynamic & 0xffff_0000
}

/// Which of the kernel's timestamps the client would echo: an acknowledgement that moves on from a byte echoes the first segment
/// that held it (RFC 7323, section 4.3). What was sent twice tells nothing, as without timestamps (RFC 6298, section 3).
#[derive(Debug, Clone, Default)]
struct Echoes {
    /// The first sequence number of each timestamp, in order.
    first: VecDeque<(u32, u32)>,
    /// What comes next in sequence.
    next: Option<u32>,
    /// What was sent twice: first sequence number, and the one behind the last.
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

/// Whether a sequence number is before another.
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests;
