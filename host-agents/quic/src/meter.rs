//! RPT, N_AF and N_FF (`docs/cookie.md`, "Signals") of the responses of QUIC connections, from nothing but the packets themselves.
//!
//! A meter sees the frames of each packet sent and received (see [`crate::session`]). So a response counts until its last byte is acknowledged,
//! whatever the application, HTTP/3 and noq have buffered.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

mod ranges;
mod response;

use crate::frames::{self, Frame};
use crate::session::{Observer, Packet};
use response::Response;
use rustc_hash::FxHashMap;

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
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    responses: FxHashMap<u64, Response>,
    in_flight: VecDeque<Sent>,
    batch: Batch,
}

/// The packets made since the last batch was sent, which are the next.
#[derive(Debug, Default)]
struct Batch {
    /// Of the responses whose bytes they carry the one with the fewest left then: how many, and its stream.
    least: Option<(u64, u64)>,
    /// Whether it was asked for, so that what is made next is of another one. It may be asked for again, if the socket was not ready.
    asked: bool,
}

impl Batch {
    fn begin(&mut self) {
        if std::mem::take(&mut self.asked) {
            self.least = None;
        }
    }

    fn add(&mut self, remaining: u64, stream: u64) {
        let this = (remaining, stream);
        self.least = Some(self.least.map_or(this, |least| least.min(this)));
    }
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
            state: Mutex::default(),
        }
    }

    /// A response of `size` bytes, if known, begins on `stream`.
    pub fn begin(&self, stream: u64, size: Option<u64>) {
        self.change(|state, loads| {
            let mut response = Response::new(size);
            response.account(loads);
            if let Some(replaced) = state.responses.insert(stream, response) {
                replaced.leave(loads);
            }
        });
    }

    /// Bytes that are still to be acknowledged of the response that the next batch of packets carries; of several, the least. A batch that carries
    /// none has that of the response nearest to its end. To be called as the batch is sent: what is made after that belongs to another.
    pub fn remaining(&self) -> u64 {
        let mut state = self.state.lock().expect("nobody panics with it");
        state.batch.asked = true;
        let State {
            responses, batch, ..
        } = &*state;
        let carried = batch.least.and_then(|(_, stream)| responses.get(&stream));
        carried
            .map(Response::remaining)
            .or_else(|| responses.values().map(Response::remaining).min())
            .unwrap_or(0)
    }

    /// Whether every response was acknowledged whole.
    pub fn is_idle(&self) -> bool {
        let state = self.state.lock().expect("nobody panics with it");
        state.responses.is_empty()
    }

    fn change(&self, change: impl FnOnce(&mut State, &Loads)) {
        let mut state = self.state.lock().expect("nobody panics with it");
        change(&mut state, &self.loads);
    }
}

impl Observer for Meter {
    fn sent(&self, packet: &Packet<'_>) {
        self.change(|state, loads| {
            state.batch.begin();
            frames::read(packet.payload, |frame| match frame {
                Frame::Stream { id, from, to, fin } => {
                    let Some(response) = state.responses.get_mut(&id) else {
                        return;
                    };
                    response.sent(to, fin);
                    response.account(loads);
                    state.batch.add(response.remaining(), id);
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
            std::mem::take(&mut state.responses)
                .into_values()
                .for_each(|response| response.leave(loads))
        });
    }
}

impl State {
    fn acknowledged(&mut self, first: u64, last: u64, loads: &Loads) {
        // Nearly always these are the oldest, or all known already, as clients repeat themselves.
        while let Some(oldest) = self.in_flight.front()
            && (first..=last).contains(&oldest.packet)
        {
            let sent = self.in_flight.pop_front().expect("the oldest");
            self.arrived(&sent, loads);
        }
        if self
            .in_flight
            .front()
            .is_some_and(|oldest| oldest.packet < first)
        {
            let begin = self.in_flight.partition_point(|sent| sent.packet < first);
            let end = self.in_flight.partition_point(|sent| sent.packet <= last);
            for sent in self.in_flight.drain(begin..end).collect::<Vec<_>>() {
                self.arrived(&sent, loads);
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

    fn arrived(&mut self, sent: &Sent, loads: &Loads) {
        let Some(response) = self.responses.get_mut(&sent.stream) else {
            return;
        };
        response.acknowledged(sent.from, sent.to);
        response.account(loads);
        if response.is_whole() {
            self.leave(sent.stream, loads);
        }
    }

    fn leave(&mut self, stream: u64, loads: &Loads) {
        if let Some(response) = self.responses.remove(&stream) {
            response.leave(loads);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((loads.n_af(), loads.n_ff(), meter.remaining()), (2, 2, 100));
        drop(meter);
        assert_eq!((loads.n_af(), loads.n_ff()), (0, 0));
    }

    #[test]
    fn a_batch_tells_of_the_responses_that_it_carries() {
        let meter = Meter::new(Arc::new(Loads::new(1500)));
        for (id, size) in [(0, 9000), (4, 5000), (8, 2000)] {
            meter.begin(id, Some(size));
        }
        // Nothing was made yet; then a large one alone, asked for twice since the socket was not ready.
        assert_eq!(meter.remaining(), 2000);
        send(&meter, 0, &stream(0, 0, 1000, false));
        assert_eq!((meter.remaining(), meter.remaining()), (9000, 9000));
        // Two packets, the second with two frames; what is acknowledged meanwhile counts.
        send(&meter, 1, &stream(0, 1000, 1000, false));
        let both = [stream(4, 0, 500, false), stream(0, 2000, 500, false)].concat();
        send(&meter, 2, &both);
        acknowledge(&meter, 0, 0);
        assert_eq!(meter.remaining(), 5000);
        acknowledge(&meter, 1, 2);
        send(&meter, 3, &stream(0, 2500, 1000, false));
        assert_eq!(meter.remaining(), 6500);
        // PING.
        send(&meter, 4, &[0x01]);
        assert_eq!(meter.remaining(), 2000);
    }
}
