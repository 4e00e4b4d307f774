//! CCLB7's signal logic (CloudCookie, section IV-A; docs/cookie.md): what a server's connections still need, its loads, the cookie
//! that says so, and the server's own timestamps put back where clients echo the cookie.

use std::collections::VecDeque;

use frontage_cookie::quant::{IPV6, RPT_UNIT_US};
use frontage_cookie::tcp::{Signals, encode_dynamic};
use frontage_transport::tcp::{Flags, Segment};

use crate::scenario;

const BITS: u64 = 8;
const MICROSECONDS: u64 = 1_000_000;

/// A server's loads, and how it tells them.
#[derive(Debug, Clone)]
pub struct Agent {
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

impl Agent {
    /// An idle server's.
    pub fn new(server: &scenario::Server) -> Self {
        Self {
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

    /// Writes the cookie into a segment that leaves. Returns whether it did, which the frame must say too.
    pub fn outgoing(&self, responses: &mut Responses, segment: &mut Segment) -> bool {
        let (true, Some(ts)) = (self.cookie, segment.ts.as_mut()) else {
            return false;
        };
        let kernels = ts.val;
        ts.val = encode_dynamic(
            kernels,
            Signals {
                rpt_us: self.rpt_us(responses),
                n_af: self.loads.n_af,
                n_ff: self.loads.n_ff,
            },
        );
        responses.echoes.sent(segment, kernels);
        true
    }

    /// Puts the kernel's own timestamp back into a segment that has come in.
    pub fn incoming(&self, responses: &mut Responses, segment: &mut Segment) {
        if let (true, Some(ts)) = (self.cookie, segment.ts.as_mut()) {
            ts.ecr = responses.echoes.acknowledged(segment.ack);
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
