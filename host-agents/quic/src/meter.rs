//! RPT, N_AF and N_FF (`docs/cookie.md`, "Signals") of the responses of QUIC connections, from nothing but the packets themselves.
//!
//! A meter sees the frames of each packet sent and received (see [`crate::session`]). So a response counts until its last byte is acknowledged,
//! whatever the application, HTTP/3 and noq have buffered.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::frames::{self, Frame};
use crate::session::{Observer, Packet};

/// Packets in flight that are remembered; the window of any connection is far below.
const IN_FLIGHT: usize = 1 << 16;
/// Packets behind the last one acknowledged after which one is taken for lost; what it carried was sent again long since.
const REORDERING: u64 = 1 << 12;

/// The loads of a server.
#[derive(Debug)]
pub struct Loads {
    look_ahead: u64,
    n_af: AtomicU64,
    n_ff: AtomicU64,
}

impl Loads {
    /// No load; a response counts in N_FF while more than `look_ahead` bytes remain.
    pub fn new(look_ahead: u64) -> Self {
        Self {
            look_ahead,
            n_af: AtomicU64::new(0),
            n_ff: AtomicU64::new(0),
        }
    }

    /// Responses begun and not yet acknowledged whole.
    pub fn n_af(&self) -> u64 {
        self.n_af.load(Relaxed)
    }

    /// Those of them with more than the look-ahead left.
    pub fn n_ff(&self) -> u64 {
        self.n_ff.load(Relaxed)
    }
}

/// Measures the responses of one connection.
#[derive(Debug)]
pub struct Meter {
    loads: Arc<Loads>,
    remaining: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    responses: HashMap<u64, Response>,
    in_flight: VecDeque<Sent>,
}

#[derive(Debug)]
struct Sent {
    packet: u64,
    stream: u64,
    from: u64,
    to: u64,
}

impl Meter {
    /// A meter that adds to `loads` what its connection has under way.
    pub fn new(loads: Arc<Loads>) -> Self {
        Self {
            loads,
            remaining: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// A response of `size` bytes, if known, begins on `stream`.
    pub fn begin(&self, stream: u64, size: Option<u64>) {
        self.change(|state, loads| {
            let mut response = Response {
                size,
                ..Response::default()
            };
            response.account(loads);
            if let Some(replaced) = state.responses.insert(stream, response) {
                replaced.leave(loads);
            }
        });
    }

    /// Bytes of the connection's responses that are still to be acknowledged.
    pub fn remaining(&self) -> u64 {
        self.remaining.load(Relaxed)
    }

    /// Whether every response was acknowledged whole.
    pub fn is_idle(&self) -> bool {
        let state = self.state.lock().expect("nobody panics with it");
        state.responses.is_empty()
    }

    fn change(&self, change: impl FnOnce(&mut State, &Loads)) {
        let mut state = self.state.lock().expect("nobody panics with it");
        change(&mut state, &self.loads);
        self.remaining.store(
            state.responses.values().map(Response::remaining).sum(),
            Relaxed,
        );
    }
}

impl Observer for Meter {
    fn sent(&self, packet: &Packet<'_>) {
        self.change(|state, loads| {
            frames::read(packet.payload, |frame| match frame {
                Frame::Stream { id, from, to, fin } => {
                    let Some(response) = state.responses.get_mut(&id) else {
                        return;
                    };
                    response.sent(to, fin);
                    response.account(loads);
                    if state.in_flight.len() == IN_FLIGHT {
                        state.in_flight.pop_front();
                    }
                    state.in_flight.push_back(Sent {
                        packet: packet.number,
                        stream: id,
                        from,
                        to,
                    });
                }
                Frame::Reset { id } => state.leave(id, loads),
                _ => {}
            });
        });
    }

    fn received(&self, packet: &Packet<'_>) {
        self.change(|state, loads| {
            frames::read(packet.payload, |frame| {
                if let Frame::Acknowledged { first, last } = frame {
                    state.acknowledged(first, last, loads);
                }
            });
        });
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.change(|state, loads| {
            state
                .responses
                .drain()
                .for_each(|(_, response)| response.leave(loads))
        });
    }
}

impl State {
    fn acknowledged(&mut self, first: u64, last: u64, loads: &Loads) {
        let begin = self.in_flight.partition_point(|sent| sent.packet < first);
        let end = self.in_flight.partition_point(|sent| sent.packet <= last);
        for Sent {
            stream, from, to, ..
        } in self.in_flight.drain(begin..end).collect::<Vec<_>>()
        {
            let Some(response) = self.responses.get_mut(&stream) else {
                continue;
            };
            response.acknowledged.insert(from, to);
            response.account(loads);
            if response.is_whole() {
                self.leave(stream, loads);
            }
        }
        while self
            .in_flight
            .front()
            .is_some_and(|sent| sent.packet + REORDERING < last)
        {
            self.in_flight.pop_front();
        }
    }

    fn leave(&mut self, stream: u64, loads: &Loads) {
        if let Some(response) = self.responses.remove(&stream) {
            response.leave(loads);
        }
    }
}

#[derive(Debug, Default)]
struct Response {
    /// As announced.
    size: Option<u64>,
    /// The end of what was sent at least once.
    sent: u64,
    /// The end, once it was sent.
    end: Option<u64>,
    acknowledged: Ranges,
    counted: bool,
    counted_ff: bool,
}

impl Response {
    fn sent(&mut self, to: u64, fin: bool) {
        self.sent = self.sent.max(to);
        if fin {
            self.end = Some(to);
        }
    }

    /// Of unknown length: as many bytes again as were sent so far.
    fn remaining(&self) -> u64 {
        let whole = self
            .end
            .unwrap_or_else(|| self.size.unwrap_or(2 * self.sent).max(self.sent));
        whole.saturating_sub(self.acknowledged.total())
    }

    fn is_whole(&self) -> bool {
        self.end == Some(self.acknowledged.total())
    }

    /// Brings the loads up to date.
    fn account(&mut self, loads: &Loads) {
        if !self.counted {
            self.counted = true;
            loads.n_af.fetch_add(1, Relaxed);
        }
        let far = self.remaining() > loads.look_ahead;
        if far != self.counted_ff {
            self.counted_ff = far;
            if far {
                loads.n_ff.fetch_add(1, Relaxed)
            } else {
                loads.n_ff.fetch_sub(1, Relaxed)
            };
        }
    }

    fn leave(self, loads: &Loads) {
        loads.n_af.fetch_sub(u64::from(self.counted), Relaxed);
        loads.n_ff.fetch_sub(u64::from(self.counted_ff), Relaxed);
    }
}

/// A set of byte offsets that grows from 0, almost in order.
#[derive(Debug, Default)]
struct Ranges {
    prefix: u64,
    /// Begin and end of what is beyond the prefix, apart from each other.
    islands: BTreeMap<u64, u64>,
}

impl Ranges {
    fn insert(&mut self, mut from: u64, mut to: u64) {
        while let Some((&begin, &end)) = self
            .islands
            .range(..=to)
            .next_back()
            .filter(|(_, end)| **end >= from)
        {
            self.islands.remove(&begin);
            (from, to) = (from.min(begin), to.max(end));
        }
        if from <= self.prefix {
            self.prefix = self.prefix.max(to);
        } else {
            self.islands.insert(from, to);
        }
    }

    fn total(&self) -> u64 {
        self.prefix
            + self
                .islands
                .iter()
                .map(|(begin, end)| end - begin)
                .sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A STREAM frame with offset and length, of zeros.
    fn stream(id: u8, from: u16, length: u16, fin: bool) -> Vec<u8> {
        let mut frame = vec![0x0e | u8::from(fin), id, 0x80, 0];
        frame.extend(from.to_be_bytes());
        frame.extend([0x80, 0]);
        frame.extend(length.to_be_bytes());
        frame.resize(frame.len() + usize::from(length), 0);
        frame
    }

    fn send(meter: &Meter, number: u64, payload: &[u8]) {
        meter.sent(&Packet {
            number,
            generation: 0,
            header: &[],
            payload,
        });
    }

    fn acknowledge(meter: &Meter, first: u8, last: u8) {
        let payload = [0x02, last, 0, 0, last - first];
        meter.received(&Packet {
            number: 0,
            generation: 0,
            header: &[],
            payload: &payload,
        });
    }

    #[test]
    fn a_response_counts_until_its_end_is_acknowledged() {
        let loads = Arc::new(Loads::new(1500));
        let meter = Meter::new(loads.clone());
        meter.begin(0, Some(3000));
        assert_eq!(
            (loads.n_af(), loads.n_ff(), meter.remaining()),
            (1, 1, 3000)
        );
        for i in 0..3 {
            send(&meter, i.into(), &stream(0, 1000 * i, 1000, i == 2));
        }
        assert_eq!(meter.remaining(), 3000);
        acknowledge(&meter, 1, 2);
        assert_eq!(
            (loads.n_af(), loads.n_ff(), meter.remaining()),
            (1, 0, 1000)
        );
        // The first is sent again in another packet; then both arrive.
        send(&meter, 3, &stream(0, 0, 1000, false));
        acknowledge(&meter, 3, 3);
        assert_eq!((loads.n_af(), meter.remaining()), (0, 0));
        acknowledge(&meter, 0, 0);
        assert_eq!((loads.n_af(), loads.n_ff()), (0, 0));
    }

    #[test]
    fn an_unknown_length_is_twice_what_was_sent() {
        let loads = Arc::new(Loads::new(1500));
        let meter = Meter::new(loads.clone());
        meter.begin(4, None);
        send(&meter, 0, &stream(4, 0, 1000, false));
        assert_eq!((meter.remaining(), loads.n_ff()), (2000, 1));
        acknowledge(&meter, 0, 0);
        assert_eq!((meter.remaining(), loads.n_ff()), (1000, 0));
        send(&meter, 1, &stream(4, 1000, 0, true));
        acknowledge(&meter, 1, 1);
        assert_eq!((loads.n_af(), meter.remaining()), (0, 0));
    }

    #[test]
    fn resets_and_ends_of_connections_leave_nothing() {
        let loads = Arc::new(Loads::new(10));
        let meter = Meter::new(loads.clone());
        for id in [0, 4, 8] {
            meter.begin(id, Some(100));
        }
        send(&meter, 0, &[0x04, 4, 0, 0]);
        assert_eq!((loads.n_af(), loads.n_ff(), meter.remaining()), (2, 2, 200));
        drop(meter);
        assert_eq!((loads.n_af(), loads.n_ff()), (0, 0));
    }

    proptest! {
        #[test]
        fn ranges_are_a_set(parts in prop::collection::vec((0u64..64, 0u64..16), 0..32)) {
            let (mut ranges, mut set) = (Ranges::default(), std::collections::BTreeSet::new());
            for (from, length) in parts {
                ranges.insert(from, from + length);
                set.extend(from..from + length);
                prop_assert_eq!(ranges.total(), set.len() as u64);
            }
        }
    }
}
