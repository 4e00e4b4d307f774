// SPDX-License-Identifier: Apache-2.0
//! RPT, N_AF and N_FF (`docs/cookie.md`, "Signals") of the responses on QUIC connections, measured from the packets
//! themselves.
//!
//! A meter sees the frames of each packet that is about to be sent (see [`crate::session`]). So a response has bytes
//! left until its last byte leaves, however much the application, HTTP/3 and noq have buffered. The meter also sees
//! received packets, and so knows where the client is ([`crate::migration`]).

use std::net::SocketAddr;
use std::sync::Arc;

pub(crate) mod batch;

use crate::migration::{LocalAddress, PathTable};
use crate::session::{Observer, Packet};
use crate::tracker::{PathState, PathTracker};
use batch::{BatchSummary, StreamBytes};
pub use frontage_cookie::load::{Loads, Response};
use frontage_quic_wire::frames::{self, Frame};
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;

/// Measures the responses of one connection, and tells the socket what each batch of packets carries.
#[derive(Debug)]
pub struct Meter(Arc<Shared>);

/// The part that the batch under construction refers to.
#[derive(Debug)]
struct Shared {
    loads: Arc<Loads>,
    tracker: PathTracker,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Responses that are not completely sent, by stream id.
    responses: FxHashMap<u64, Measured>,
    path: PathState,
}

/// A response and its urgency (RFC 9218).
#[derive(Debug)]
struct Measured {
    response: Response,
    urgency: u8,
}

/// Urgency of responses without a priority (RFC 9218, section 4.1).
const DEFAULT_URGENCY: u8 = 3;
/// Binary logarithm of the factor between the remaining bytes of one urgency and the next.
const URGENCY_SHIFT: u32 = 2;

impl Measured {
    /// Return the remaining bytes for the RPT: a quarter for each step of higher urgency, and four times as many for
    /// each step of lower urgency. The scheduler thus prefers an urgent response to one that is up to four times shorter.
    fn remaining(&self) -> u64 {
        let remaining = self.response.remaining();
        let (urgency, default) = (u32::from(self.urgency), u32::from(DEFAULT_URGENCY));
        match urgency.checked_sub(default) {
            None => remaining >> (URGENCY_SHIFT * (default - urgency)),
            Some(steps) => remaining.saturating_mul(1 << (URGENCY_SHIFT * steps)),
        }
    }
}

/// The bit of a stream id that marks a unidirectional stream (RFC 9000, section 2.1). Responses use bidirectional
/// streams.
const UNIDIRECTIONAL: u64 = 0x02;

impl Meter {
    /// Create the meter of a connection. Its responses count in `loads`, and it records in `path_table` where its
    /// client is.
    pub fn new(loads: Arc<Loads>, path_table: Arc<PathTable>) -> Self {
        Self(Arc::new(Shared {
            loads,
            tracker: PathTracker::new(path_table),
            state: Mutex::default(),
        }))
    }

    /// Begin a response on `stream`, of `size` bytes if known.
    pub fn begin(&self, stream: u64, size: Option<u64>) {
        self.begin_urgent(stream, size, DEFAULT_URGENCY);
    }

    /// Begin a response with an urgency from 0 to 7 (RFC 9218), which scales its RPT.
    pub fn begin_urgent(&self, stream: u64, size: Option<u64>, urgency: u8) {
        let measured = Measured {
            response: Response::new(self.0.loads.clone(), size),
            urgency,
        };
        self.0.state().responses.insert(stream, measured);
    }

    /// Return the address from which packets to `client` leave: the one at which its newest packet arrived. Before
    /// the first datagram without a long header, that is the address of the handshake, in whose last datagram a
    /// client may send its first request (RFC 9000, section 12.2).
    pub fn local_address(&self, client: SocketAddr) -> LocalAddress {
        let address = self.0.state().path.address();
        address.unwrap_or_else(|| self.0.tracker.handshake_address(client))
    }

    /// Set the address from which packets to the client leave, as reported by the host that receives the client's
    /// packets (QDSR).
    pub fn set_local_address(&self, address: LocalAddress) {
        self.0.state().path.on_remote_update(address);
    }
}

impl Shared {
    /// Record that a batch with these bytes is sent. Of several responses in it, the one with the least bytes left
    /// counts.
    fn on_batch(&self, sent: &[StreamBytes]) -> BatchSummary {
        let State { responses, path } = &mut *self.state();
        let least = sent.iter().map(|bytes| bytes.record(responses)).min();
        BatchSummary {
            remaining: least.or_else(|| responses.is_empty().then_some(0)),
            address: path.address(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl StreamBytes {
    /// Record these bytes in their response, and return what remained of it before: 0 if all of it had been sent.
    fn record(&self, responses: &mut FxHashMap<u64, Measured>) -> u64 {
        if self.fin {
            let finished = responses.remove(&self.stream);
            return finished.map_or(0, |measured| measured.remaining());
        }
        responses.get_mut(&self.stream).map_or(0, |measured| {
            let remaining = measured.remaining();
            measured.response.on_sent(self.to);
            remaining
        })
    }
}

impl Observer for Meter {
    fn on_probe(&self) {
        batch::extend(&self.0, batch::Batch::set_probe);
    }

    #[inline]
    fn on_sent(&self, packet: &Packet<'_>) {
        batch::extend(&self.0, |batch| {
            for frame in frames::read(packet.payload) {
                match frame {
                    Frame::Stream { id, to, fin, .. } if id & UNIDIRECTIONAL == 0 => {
                        batch.add(StreamBytes {
                            stream: id,
                            to,
                            fin,
                        });
                    }
                    Frame::Reset { id } => drop(self.0.state().responses.remove(&id)),
                    Frame::PathResponse { data } => {
                        if let Some(address) = self.0.state().path.challenge_address(data) {
                            batch.set_response_address(address);
                        }
                    }
                    _ => {}
                }
            }
        });
    }

    #[inline]
    fn on_received(&self, packet: &Packet<'_>) {
        if let Some(arrival) = self.0.tracker.on_packet(packet) {
            let state = &mut *self.0.state();
            state
                .path
                .on_arrival(&self.0.tracker, &arrival, packet.payload);
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

    /// Make a packet.
    fn make(meter: &Meter, payload: &[u8]) {
        meter.on_sent(&Packet {
            path: 0,
            number: 0,
            generation: 0,
            header: &[],
            payload,
            tag: None,
        });
    }

    /// End the batch, and return the bytes remaining of its response.
    fn end() -> Option<u64> {
        batch::finish()?.remaining
    }

    /// Send a batch of one packet, and return the bytes remaining of its response.
    fn send(meter: &Meter, payload: &[u8]) -> u64 {
        make(meter, payload);
        end().expect("the batch carries a response, or there is none")
    }

    fn meter(loads: &Arc<Loads>) -> Meter {
        Meter::new(loads.clone(), Arc::default())
    }

    fn counted(loads: &Loads) -> (u64, u64) {
        (loads.n_af(), loads.n_ff())
    }

    #[test]
    fn response_is_measured_until_its_end_is_sent() {
        let loads = Arc::new(Loads::new(1500));
        let meter = meter(&loads);
        meter.begin(0, Some(3000));
        assert_eq!(counted(&loads), (1, 1));
        assert_eq!(send(&meter, &stream(0, 0, 1000, false)), 3000);
        assert_eq!(counted(&loads), (1, 1));
        assert_eq!(send(&meter, &stream(0, 1000, 1000, false)), 2000);
        assert_eq!(counted(&loads), (1, 0));
        // A retransmission: only bytes that were never sent count as remaining.
        assert_eq!(send(&meter, &stream(0, 0, 1000, false)), 1000);
        assert_eq!(send(&meter, &stream(0, 2000, 1000, true)), 1000);
        assert_eq!(counted(&loads), (0, 0));
        // A retransmission of the last bytes, while another response is under way.
        meter.begin(4, Some(9000));
        assert_eq!(send(&meter, &stream(0, 2000, 1000, true)), 0);
        assert_eq!(counted(&loads), (1, 1));
    }

    #[test]
    fn urgency_scales_the_remaining_bytes_but_not_the_loads() {
        let loads = Arc::new(Loads::new(1500));
        let meter = meter(&loads);
        for (id, urgency, remaining) in [(0, 3, 3000), (4, 2, 750), (8, 0, 46), (12, 5, 48_000)] {
            meter.begin_urgent(id.into(), Some(3000), urgency);
            assert_eq!(counted(&loads), (1, 1));
            assert_eq!(send(&meter, &stream(id, 0, 3000, true)), remaining);
        }
    }

    #[test]
    fn response_of_unknown_size_has_as_much_left_as_was_sent() {
        let loads = Arc::new(Loads::new(1500));
        let meter = meter(&loads);
        meter.begin(4, None);
        assert_eq!(send(&meter, &stream(4, 0, 1000, false)), 0);
        assert_eq!(send(&meter, &stream(4, 1000, 1000, false)), 1000);
        assert_eq!(counted(&loads), (1, 1));
        assert_eq!(send(&meter, &stream(4, 2000, 0, true)), 2000);
        assert_eq!(counted(&loads), (0, 0));
    }

    /// A client's first 1-RTT packet shares a datagram with the last packet of its handshake.
    #[test]
    fn client_is_at_the_address_of_its_handshake_until_a_1_rtt_datagram_arrives() {
        let client = "[2001:db8::1]:1".parse().expect("a socket address");
        let path_table = Arc::<PathTable>::default();
        let meter = Meter::new(Arc::new(Loads::new(0)), path_table.clone());
        let receive = |number, datagram: &[u8; 40]| {
            path_table.on_datagrams(client, LocalAddress::Cookie(3), datagram, 40);
            meter.on_received(&Packet {
                path: 0,
                number,
                generation: 0,
                header: &[],
                payload: &[0x01],
                tag: datagram.last_chunk(),
            });
        };
        receive(0, &[0xe0; 40]);
        assert_eq!(meter.local_address(client), LocalAddress::Cookie(3));
        receive(1, &[0x40; 40]);
        // Another connection from that port.
        path_table.on_datagrams(client, LocalAddress::Vip, &[0xc0; 40], 40);
        assert_eq!(meter.local_address(client), LocalAddress::Cookie(3));
    }

    #[test]
    fn probe_leaves_as_if_nothing_remained() {
        let meter = meter(&Arc::new(Loads::new(1500)));
        meter.begin(0, Some(9000));
        assert_eq!(send(&meter, &stream(0, 0, 1000, false)), 9000);
        meter.on_probe();
        assert_eq!(send(&meter, &stream(0, 1000, 1000, false)), 0);
        meter.on_probe();
        assert_eq!(send(&meter, &[0x01]), 0);
        assert_eq!(send(&meter, &stream(0, 2000, 1000, false)), 7000);
    }

    #[test]
    fn reset_and_closed_connection_release_their_loads() {
        let loads = Arc::new(Loads::new(10));
        let meter = meter(&loads);
        for id in [0, 4, 8] {
            meter.begin(id, Some(100));
        }
        make(&meter, &[0x04, 4, 0, 0]);
        assert_eq!((end(), counted(&loads)), (None, (2, 2)));
        drop(meter);
        assert_eq!(counted(&loads), (0, 0));
    }

    #[test]
    fn batch_summary_covers_the_responses_in_the_batch() {
        let loads = Arc::new(Loads::new(1500));
        let meter = meter(&loads);
        for (id, size) in [(0, 9000), (4, 5000), (8, 2000)] {
            meter.begin(id, Some(size));
        }
        assert_eq!(send(&meter, &stream(0, 0, 1000, false)), 9000);
        assert_eq!(end(), None);
        // Three packets: one without bytes of a response, one with two frames.
        make(&meter, &[0x01]);
        make(&meter, &stream(0, 1000, 1000, false));
        let both = [stream(4, 0, 500, false), stream(0, 2000, 500, false)].concat();
        make(&meter, &both);
        assert_eq!(end(), Some(5000));
        // Consecutive bytes of one stream count together.
        for from in [2500, 3500] {
            make(&meter, &stream(0, from, 1000, false));
        }
        assert_eq!(end(), Some(6500));
        make(&meter, &[0x01]);
        assert_eq!(end(), None);
        // A unidirectional stream carries no response.
        make(&meter, &stream(3, 0, 10, false));
        assert_eq!(end(), None);
        // A batch that was never sent ends when another connection begins one.
        let other = self::meter(&loads);
        make(&meter, &stream(0, 4500, 1000, false));
        assert_eq!(send(&other, &[0x01]), 0);
        assert_eq!(send(&meter, &stream(0, 5500, 1000, false)), 3500);
    }
}
