//! RPT and N_FF (`docs/cookie.md`, "Signals") of the responses of QUIC connections, from nothing but the packets themselves, and N_AF.
//!
//! A meter sees the frames of each packet sent and received (see [`crate::session`]). So a response has bytes left until its last one is
//! acknowledged, whatever the application, HTTP/3 and noq have buffered.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) mod batch;
mod ranges;
mod response;

use crate::frames::{self, Frame};
use crate::session::{Observer, Packet};
use batch::Sent;
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

    /// One more response is under way, until the result is dropped; that should be once all of it is acknowledged (see [`crate::h3`]).
    pub fn begin(self: &Arc<Self>) -> Active {
        self.n_af.fetch_add(1, Relaxed);
        Active(self.clone())
    }

    /// Responses begun and not yet acknowledged whole.
    pub fn n_af(&self) -> u64 {
        self.n_af.load(Relaxed)
    }

    /// Those of them with more than the look-ahead left, as far as meters see them.
    pub fn n_ff(&self) -> u64 {
        self.n_ff.load(Relaxed)
    }
}

/// A response that counts in N_AF.
#[derive(Debug)]
pub struct Active(Arc<Loads>);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.n_af.fetch_sub(1, Relaxed);
    }
}

/// Measures the responses of one connection, and tells the socket of the batches of packets that carry them.
#[derive(Debug)]
pub struct Meter(Arc<Shared>);

/// With the batch that is being made.
#[derive(Debug)]
struct Shared {
    loads: Arc<Loads>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    responses: FxHashMap<u64, Response>,
    in_flight: VecDeque<Sent>,
}

impl Meter {
    /// A meter that adds to the N_FF of `loads` what its connection has under way.
    pub fn new(loads: Arc<Loads>) -> Self {
        Self(Arc::new(Shared {
            loads,
            state: Mutex::default(),
        }))
    }

    /// A response of `size` bytes, if known, begins on `stream`.
    pub fn begin(&self, stream: u64, size: Option<u64>) {
        let Shared { loads, .. } = &*self.0;
        let mut response = Response::new(size);
        response.account(loads);
        if let Some(replaced) = self.0.state().responses.insert(stream, response) {
            replaced.leave(loads);
        }
    }
}

impl Shared {
    /// These packets are sent. What is left then of the response that they carry; of several, the least. `None` if they carry none, while there
    /// is one.
    fn sent(&self, packets: &[Sent]) -> Option<u64> {
        let state = &mut *self.state();
        // Most batches are of one response: one look-up.
        let least = packets
            .chunk_by(|one, next| one.stream == next.stream)
            .filter_map(|sent| state.sent(sent, &self.loads))
            .min();
        least.or_else(|| state.responses.is_empty().then_some(0))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }
}

impl Observer for Meter {
    fn sent(&self, packet: &Packet<'_>) {
        batch::make(&self.0, |batch| {
            frames::read(packet.payload, |frame| {
                match frame {
                    Frame::Stream { id, from, to, fin } => batch.push(Sent {
                        packet: packet.number,
                        stream: id,
                        from,
                        to,
                        fin,
                    }),
                    Frame::Reset { id } => self.0.state().leave(id, &self.0.loads),
                    _ => {}
                }
                ControlFlow::Continue(())
            });
        });
    }

    fn received(&self, packet: &Packet<'_>) {
        let Shared { loads, .. } = &*self.0;
        let state = &mut *self.0.state();
        frames::read(packet.payload, |frame| match frame {
            Frame::Acknowledged { first, last } => state.acknowledged(first, last, loads),
            _ => ControlFlow::Continue(()),
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let responses = std::mem::take(&mut self.state().responses);
        responses
            .into_values()
            .for_each(|response| response.leave(&self.loads));
    }
}

impl State {
    /// What is left then of the response whose stream all of `sent` are of, if it is one's.
    fn sent(&mut self, sent: &[Sent], loads: &Loads) -> Option<u64> {
        let response = self.responses.get_mut(&sent.first()?.stream)?;
        for packet in sent {
            response.sent(packet.to, packet.fin);
        }
        let remaining = response.account(loads);
        self.in_flight.extend(sent);
        let forgotten = self.in_flight.len().saturating_sub(IN_FLIGHT);
        self.in_flight.drain(..forgotten);
        Some(remaining)
    }

    /// Packets `first..=last` arrived; it breaks if none is in flight that is older, as no further range matters then.
    fn acknowledged(&mut self, first: u64, last: u64, loads: &Loads) -> ControlFlow<()> {
        // Nearly always these are the oldest, or all known already, as clients repeat themselves; and bytes in a row, which arrive as one.
        while let Some(mut row) = self.take_oldest(|sent| (first..=last).contains(&sent.packet)) {
            while let Some(next) = self.take_oldest(|sent| {
                (first..=last).contains(&sent.packet)
                    && (sent.stream, sent.from) == (row.stream, row.to)
            }) {
                row.to = next.to;
            }
            self.arrived(row, loads);
        }
        if self
            .in_flight
            .front()
            .is_some_and(|oldest| oldest.packet < first)
        {
            let begin = self.in_flight.partition_point(|sent| sent.packet < first);
            let end = self.in_flight.partition_point(|sent| sent.packet <= last);
            for i in begin..end {
                self.arrived(self.in_flight[i], loads);
            }
            self.in_flight.drain(begin..end);
        }
        while self
            .in_flight
            .front()
            .is_some_and(|sent| sent.packet + REORDERING < last)
        {
            self.in_flight.pop_front();
        }
        match self.in_flight.front() {
            Some(oldest) if oldest.packet < first => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    fn take_oldest(&mut self, that: impl Fn(&Sent) -> bool) -> Option<Sent> {
        let oldest = *self.in_flight.front().filter(|oldest| that(oldest))?;
        self.in_flight.pop_front();
        Some(oldest)
    }

    fn arrived(&mut self, sent: Sent, loads: &Loads) {
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

    /// A packet is made.
    fn make(meter: &Meter, number: u64, payload: &[u8]) {
        meter.sent(&Packet {
            number,
            generation: 0,
            header: &[],
            payload,
        });
    }

    /// A batch of one packet; what it tells.
    fn send(meter: &Meter, number: u64, payload: &[u8]) -> u64 {
        make(meter, number, payload);
        batch::send().expect("a packet was made")
    }

    /// What is left of the response nearest to its end.
    fn remaining(meter: &Meter) -> u64 {
        let state = meter.0.state();
        let all = state.responses.values().map(Response::remaining);
        all.min().unwrap_or(0)
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
    fn a_response_is_measured_until_its_end_is_acknowledged() {
        let loads = Arc::new(Loads::new(1500));
        let meter = Meter::new(loads.clone());
        meter.begin(0, Some(3000));
        assert_eq!((loads.n_ff(), remaining(&meter)), (1, 3000));
        for i in 0..3 {
            send(&meter, 1 + u64::from(i), &stream(0, 1000 * i, 1000, i == 2));
        }
        assert_eq!(remaining(&meter), 3000);
        acknowledge(&meter, 2, 3);
        assert_eq!((loads.n_ff(), remaining(&meter)), (0, 1000));
        // The first is sent again in another packet; then both arrive.
        send(&meter, 6, &stream(0, 0, 1000, false));
        acknowledge(&meter, 6, 6);
        assert!(meter.0.state().responses.is_empty());
        acknowledge(&meter, 1, 1);
        assert_eq!((loads.n_ff(), remaining(&meter)), (0, 0));
    }

    #[test]
    fn an_unknown_length_is_twice_what_was_sent() {
        let loads = Arc::new(Loads::new(1500));
        let meter = Meter::new(loads.clone());
        meter.begin(4, None);
        send(&meter, 0, &stream(4, 0, 1000, false));
        assert_eq!((remaining(&meter), loads.n_ff()), (2000, 1));
        acknowledge(&meter, 0, 0);
        assert_eq!((remaining(&meter), loads.n_ff()), (1000, 0));
        send(&meter, 3, &stream(4, 1000, 0, true));
        acknowledge(&meter, 3, 3);
        assert!(meter.0.state().responses.is_empty());
    }

    #[test]
    fn resets_and_ends_of_connections_leave_nothing() {
        let loads = Arc::new(Loads::new(10));
        let meter = Meter::new(loads.clone());
        for id in [0, 4, 8] {
            meter.begin(id, Some(100));
        }
        make(&meter, 0, &[0x04, 4, 0, 0]);
        assert_eq!(batch::send(), None);
        assert_eq!((loads.n_ff(), remaining(&meter)), (2, 100));
        drop(meter);
        assert_eq!(loads.n_ff(), 0);
    }

    #[test]
    fn a_batch_tells_of_the_responses_that_it_carries() {
        let meter = Meter::new(Arc::new(Loads::new(1500)));
        for (id, size) in [(0, 9000), (4, 5000), (8, 2000)] {
            meter.begin(id, Some(size));
        }
        assert_eq!(send(&meter, 0, &stream(0, 0, 1000, false)), 9000);
        assert_eq!(batch::send(), None);
        // Three packets, one without bytes of a response, one with two frames; what is acknowledged before counts.
        acknowledge(&meter, 0, 0);
        make(&meter, 1, &[0x01]);
        make(&meter, 2, &stream(0, 1000, 1000, false));
        let both = [stream(4, 0, 500, false), stream(0, 2000, 500, false)].concat();
        make(&meter, 3, &both);
        assert_eq!(batch::send(), Some(5000));
        acknowledge(&meter, 2, 3);
        assert_eq!(send(&meter, 4, &stream(0, 2500, 1000, false)), 6500);
        make(&meter, 5, &[0x01]);
        assert_eq!(batch::send(), None);
        // What nobody sent ends with another connection's.
        let other = Meter::new(meter.0.loads.clone());
        make(&meter, 6, &stream(0, 3500, 1000, false));
        assert_eq!(send(&other, 0, &[0x01]), 0);
        acknowledge(&meter, 6, 6);
        assert_eq!(send(&meter, 7, &stream(0, 4500, 1000, false)), 5500);
    }

    #[test]
    fn responses_begun_are_active_until_they_are_dropped() {
        let loads = Arc::new(Loads::new(0));
        let active = [loads.begin(), loads.begin()];
        assert_eq!(loads.n_af(), 2);
        drop(active);
        assert_eq!(loads.n_af(), 0);
    }
}
