//! RPT, N_AF and N_FF (`docs/cookie.md`, "Signals") of the responses of QUIC connections, from nothing but the packets themselves.
//!
//! A meter sees the frames of each packet that is about to be sent (see [`crate::session`]). So a response has bytes left until its last one
//! leaves, whatever the application, HTTP/3 and noq have buffered. It sees those that come in, too, and so where the client is ([`crate::path`]).

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) mod batch;

use crate::frames::{self, Frame};
use crate::path::{Known, Path};
use crate::places::{Place, Places};
use crate::session::{Observer, Packet};
use batch::{Sent, Told};
pub use frontage_signals::{Loads, Response};
use rustc_hash::FxHashMap;

/// Measures the responses of one connection, and tells the socket of the batches of packets that carry them.
#[derive(Debug)]
pub struct Meter(Arc<Shared>);

/// With the batch that is being made.
#[derive(Debug)]
struct Shared {
    loads: Arc<Loads>,
    path: Path,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Those not sent whole, by stream.
    responses: FxHashMap<u64, Response>,
    path: Known,
}

/// The bit of a stream's id that says that only one side sends (RFC 9000, section 2.1), as no response does.
const UNIDIRECTIONAL: u64 = 0x02;

impl Meter {
    /// A meter that adds to `loads` what its connection has under way, and says in `places` where its client is.
    pub fn new(loads: Arc<Loads>, places: Arc<Places>) -> Self {
        Self(Arc::new(Shared {
            loads,
            path: Path::new(places),
            state: Mutex::default(),
        }))
    }

    /// A response of `size` bytes, if known, begins on `stream`.
    pub fn begin(&self, stream: u64, size: Option<u64>) {
        let response = Response::new(self.0.loads.clone(), size);
        self.0.state().responses.insert(stream, response);
    }

    /// Where packets to `client` leave from: where its newest came. Until one comes in a datagram without a long header, that is where its handshake came, in whose
    /// last datagram a client may send its first request (RFC 9000, section 12.2).
    pub fn place(&self, client: SocketAddr) -> Place {
        let known = self.0.state().path.place();
        known.unwrap_or_else(|| self.0.path.opening(client))
    }

    /// The client is to be answered from `place`, as the host says that hears it (QDSR).
    pub fn answer_from(&self, place: Place) {
        self.0.state().path.told(place);
    }
}

impl Shared {
    /// These are sent. Of several responses, what was left of the least.
    fn send(&self, sent: &[Sent]) -> Told {
        let State { responses, path } = &mut *self.state();
        let least = sent.iter().map(|sent| sent.of(responses)).min();
        Told {
            remaining: least.or_else(|| responses.is_empty().then_some(0)),
            place: path.place(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }
}

impl Sent {
    /// What was left of its response: nothing if all of that was sent before.
    fn of(&self, responses: &mut FxHashMap<u64, Response>) -> u64 {
        if self.fin {
            let whole = responses.remove(&self.stream);
            return whole.map_or(0, |response| response.remaining());
        }
        responses.get_mut(&self.stream).map_or(0, |response| {
            let remaining = response.remaining();
            response.send(self.to);
            remaining
        })
    }
}

impl Observer for Meter {
    #[inline]
    fn sent(&self, packet: &Packet<'_>) {
        batch::make(&self.0, |batch| {
            for frame in frames::read(packet.payload) {
                match frame {
                    Frame::Stream { id, to, fin, .. } if id & UNIDIRECTIONAL == 0 => {
                        batch.add(Sent {
                            stream: id,
                            to,
                            fin,
                        });
                    }
                    Frame::Reset { id } => drop(self.0.state().responses.remove(&id)),
                    Frame::PathResponse { data } => {
                        if let Some(place) = self.0.state().path.asked(data) {
                            batch.answers(place);
                        }
                    }
                    _ => {}
                }
            }
        });
    }

    #[inline]
    fn received(&self, packet: &Packet<'_>) {
        if let Some(sighting) = self.0.path.received(packet) {
            let state = &mut *self.0.state();
            state.path.sighted(&self.0.path, &sighting, packet.payload);
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
    fn make(meter: &Meter, payload: &[u8]) {
        meter.sent(&Packet {
            path: 0,
            number: 0,
            generation: 0,
            header: &[],
            payload,
            tag: None,
        });
    }

    /// What a batch tells of a response.
    fn end() -> Option<u64> {
        batch::send()?.remaining
    }

    /// A batch of one packet; what it tells.
    fn send(meter: &Meter, payload: &[u8]) -> u64 {
        make(meter, payload);
        end().expect("it carries a response, or there is none")
    }

    fn meter(loads: &Arc<Loads>) -> Meter {
        Meter::new(loads.clone(), Arc::default())
    }

    fn counted(loads: &Loads) -> (u64, u64) {
        (loads.n_af(), loads.n_ff())
    }

    #[test]
    fn a_response_is_measured_until_its_end_is_sent() {
        let loads = Arc::new(Loads::new(1500));
        let meter = meter(&loads);
        meter.begin(0, Some(3000));
        assert_eq!(counted(&loads), (1, 1));
        assert_eq!(send(&meter, &stream(0, 0, 1000, false)), 3000);
        assert_eq!(counted(&loads), (1, 1));
        assert_eq!(send(&meter, &stream(0, 1000, 1000, false)), 2000);
        assert_eq!(counted(&loads), (1, 0));
        // Again: what is left is what was never sent.
        assert_eq!(send(&meter, &stream(0, 0, 1000, false)), 1000);
        assert_eq!(send(&meter, &stream(0, 2000, 1000, true)), 1000);
        assert_eq!(counted(&loads), (0, 0));
        // Once more, while another is under way.
        meter.begin(4, Some(9000));
        assert_eq!(send(&meter, &stream(0, 2000, 1000, true)), 0);
        assert_eq!(counted(&loads), (1, 1));
    }

    #[test]
    fn an_unknown_length_is_twice_what_was_sent() {
        let loads = Arc::new(Loads::new(1500));
        let meter = meter(&loads);
        meter.begin(4, None);
        assert_eq!(send(&meter, &stream(4, 0, 1000, false)), 0);
        assert_eq!(send(&meter, &stream(4, 1000, 1000, false)), 1000);
        assert_eq!(counted(&loads), (1, 1));
        assert_eq!(send(&meter, &stream(4, 2000, 0, true)), 2000);
        assert_eq!(counted(&loads), (0, 0));
    }

    /// Its first packet by 1-RTT keys comes in one datagram with the last of its handshake.
    #[test]
    fn a_client_is_where_its_handshake_is_until_it_is_sighted() {
        let client = "[2001:db8::1]:1".parse().expect("an address");
        let places = Arc::<Places>::default();
        let meter = Meter::new(Arc::new(Loads::new(0)), places.clone());
        let receive = |number, datagram: &[u8; 40]| {
            places.came(client, Place::Cookie(3), datagram, 40);
            meter.received(&Packet {
                path: 0,
                number,
                generation: 0,
                header: &[],
                payload: &[0x01],
                tag: datagram.last_chunk(),
            });
        };
        receive(0, &[0xe0; 40]);
        assert_eq!(meter.place(client), Place::Cookie(3));
        receive(1, &[0x40; 40]);
        // Another connection of that port.
        places.came(client, Place::Vip, &[0xc0; 40], 40);
        assert_eq!(meter.place(client), Place::Cookie(3));
    }

    #[test]
    fn resets_and_ends_of_connections_leave_nothing() {
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
    fn a_batch_tells_of_the_responses_that_it_carries() {
        let loads = Arc::new(Loads::new(1500));
        let meter = meter(&loads);
        for (id, size) in [(0, 9000), (4, 5000), (8, 2000)] {
            meter.begin(id, Some(size));
        }
        assert_eq!(send(&meter, &stream(0, 0, 1000, false)), 9000);
        assert_eq!(end(), None);
        // Three packets, one without bytes of a response, one with two frames.
        make(&meter, &[0x01]);
        make(&meter, &stream(0, 1000, 1000, false));
        let both = [stream(4, 0, 500, false), stream(0, 2000, 500, false)].concat();
        make(&meter, &both);
        assert_eq!(end(), Some(5000));
        // All of them count, and bytes in a row at once.
        for from in [2500, 3500] {
            make(&meter, &stream(0, from, 1000, false));
        }
        assert_eq!(end(), Some(6500));
        make(&meter, &[0x01]);
        assert_eq!(end(), None);
        // A stream of one direction is no response's.
        make(&meter, &stream(3, 0, 10, false));
        assert_eq!(end(), None);
        // What nobody sent ends with another connection's.
        let other = self::meter(&loads);
        make(&meter, &stream(0, 4500, 1000, false));
        assert_eq!(send(&other, &[0x01]), 0);
        assert_eq!(send(&meter, &stream(0, 5500, 1000, false)), 3500);
    }
}
