// SPDX-License-Identifier: Apache-2.0
//! Time that the signals add to each packet of a QUIC server. The meter reads the frames of sent packets. The socket
//! determines the server's load, seals it, and tracks the addresses of clients. There is no network below the socket.

use std::io::{self, IoSliceMut};
use std::net::{Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use anyhow::{Result, ensure};
use frontage_cookie::{Secret, ipv6};
use frontage_quic::keys::Keys;
use frontage_quic::layer::{Layer, Layered, NullSocket, SendLayer};
use frontage_quic::meter::{Loads, Meter};
use frontage_quic::migration::PathTable;
use frontage_quic::session::{Observer as _, Packet};
use frontage_quic::socket::{Addressing, CookiePrefix, Socket};
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use serde::Serialize;

/// Number of connections. They send batches in turn, so the processor's caches do not serve a single connection.
const CONNECTIONS: usize = 100;
/// Batches per response.
const BATCHES: u64 = 100;
/// Packets per batch.
const BATCH: u64 = 10;
/// Bytes per packet.
const PACKET: usize = 1400;
/// Bytes of a client's datagram with an acknowledgment.
const ARRIVED: usize = 40;
/// ACK frame of such a datagram (RFC 9000, section 19.3).
const ACK: [u8; 5] = [0x02, 0, 0, 0, 0];
const ROUNDS: u64 = 2000;
const PREFIX: u64 = 0x2001_0db8_0000_0007;
const PORT: u16 = 4433;

/// Nanoseconds per packet.
#[derive(Serialize)]
pub struct Times {
    median: f64,
    p99: f64,
    /// Mean without the longest percent, which other processes may have delayed.
    mean: f64,
}

pub fn measure() -> Result<Times> {
    let key = ipv6::Key::new(4, &Secret::new(&[7; 32])?);
    let loads = Arc::new(Loads::new(1_000_000));
    let cookie_prefix = CookiePrefix {
        prefix: PREFIX,
        keys: Arc::new(Keys::new(7, vec![key])?),
        loads: loads.clone(),
        bandwidth: 1_000_000_000,
    };
    let wire = Arc::new(Mutex::new(Wire::default()));
    let path_table = Arc::<PathTable>::default();
    let addresses = Addressing {
        path_table: path_table.clone(),
        cookie_prefix: Some(cookie_prefix),
        tunnel: None,
    };
    let below = NullSocket {
        address: SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)),
        max_transmit_segments: NonZeroUsize::new(BATCH as usize).expect("a batch has packets"),
    };
    let below = Layered::new(Box::new(below), WireLayer(wire.clone()));
    let mut socket = Socket::over(Box::new(below), Some(addresses));
    let mut sender = socket.create_sender();
    let mut connections: Vec<_> = (0..CONNECTIONS)
        .map(|n| {
            let address = Ipv6Addr::from_bits(0x2001_0db8_000c << 80 | n as u128);
            Connection::new(SocketAddr::from((address, 50_000)), &loads, &path_table)
        })
        .collect();
    let (mut times, mut sources) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        for connection in &mut connections {
            connection.batch(&mut socket, sender.as_mut(), &wire, &mut times);
            sources += u64::from(wire.lock().expect("one thread").source.is_some());
        }
    }
    ensure!(
        sources == ROUNDS * CONNECTIONS as u64,
        "some batches were sent without a cookie in the source address"
    );
    let clock = clock();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[(times.len() as f64 * share) as usize] - clock;
    let most = &times[..times.len() * 99 / 100];
    Ok(Times {
        median: at(0.5),
        p99: at(0.99),
        mean: most.iter().sum::<f64>() / most.len() as f64 - clock,
    })
}

/// Returns the median time of reading the clock, which each measurement includes.
fn clock() -> f64 {
    let mut pauses: Vec<f64> = (0..10_001).map(|_| nanoseconds(Instant::now())).collect();
    pauses.sort_by(f64::total_cmp);
    pauses[pauses.len() / 2]
}

fn nanoseconds(since: Instant) -> f64 {
    since.elapsed().as_nanos() as f64
}

/// A connection that always has an active response.
struct Connection {
    client: SocketAddr,
    meter: Arc<Meter>,
    /// Number of the next packet.
    number: u64,
    payload: Vec<u8>,
}

impl Connection {
    fn new(client: SocketAddr, loads: &Arc<Loads>, path_table: &Arc<PathTable>) -> Self {
        Self {
            client,
            meter: Arc::new(Meter::new(loads.clone(), path_table.clone())),
            number: 0,
            payload: vec![0; PACKET],
        }
    }

    /// Receives an acknowledgment of the previous batch, then sends a batch. Measures the time of each packet: that of the
    /// first includes the acknowledgment, that of the last includes the socket.
    fn batch(
        &mut self,
        socket: &mut Socket,
        mut sender: Pin<&mut dyn UdpSender>,
        wire: &Mutex<Wire>,
        times: &mut Vec<f64>,
    ) {
        let context = &mut Context::from_waker(Waker::noop());
        wire.lock().expect("one thread").client = Some(self.client);
        let packets = BATCHES * BATCH;
        let contents = [0; PACKET];
        for n in 0..BATCH {
            let (stream, at) = (4 * (self.number / packets), self.number % packets);
            if at == 0 {
                self.meter.begin(stream, Some(packets * DATA as u64));
            }
            stream_frame(
                &mut self.payload,
                stream,
                at * DATA as u64,
                at + 1 == packets,
            );
            let started = Instant::now();
            if n == 0 && self.number > 0 {
                let (mut buffer, mut meta) = ([0; ARRIVED], [RecvMeta::default()]);
                let received =
                    socket.poll_recv(context, &mut [IoSliceMut::new(&mut buffer)], &mut meta);
                debug_assert!(received.is_ready());
                self.meter.on_received(&Packet {
                    path: 0,
                    number: self.number,
                    generation: 0,
                    header: &[],
                    payload: &ACK,
                    tag: Some(&[0; 16]),
                });
            }
            self.meter.on_sent(&Packet {
                path: 0,
                number: self.number,
                generation: 0,
                header: &[],
                payload: &self.payload,
                tag: None,
            });
            if n + 1 == BATCH {
                let transmit = Transmit {
                    destination: self.client,
                    ecn: None,
                    contents: &contents,
                    segment_size: None,
                    src_ip: None,
                };
                let sent = sender.as_mut().poll_send(&transmit, context);
                debug_assert!(sent.is_ready());
            }
            times.push(nanoseconds(started));
            self.number += 1;
        }
    }
}

/// Data bytes of a STREAM frame that fills a packet.
const DATA: usize = PACKET - 15;

/// Writes the header of a STREAM frame with offset and length (RFC 9000, section 19.8) before data of zeros.
fn stream_frame(payload: &mut [u8], id: u64, from: u64, fin: bool) {
    payload[0] = 0x0e | u8::from(fin);
    payload[1..5].copy_from_slice(&(id as u32 | 2 << 30).to_be_bytes());
    payload[5..13].copy_from_slice(&(from | 3 << 62).to_be_bytes());
    payload[13..15].copy_from_slice(&(DATA as u16 | 1 << 14).to_be_bytes());
}

/// State of the simulated network.
#[derive(Debug, Default)]
struct Wire {
    /// Source of the next datagram.
    client: Option<SocketAddr>,
    /// Source address of the last batch.
    source: Option<std::net::IpAddr>,
}

/// The layer that connects the socket to the simulated network.
#[derive(Clone, Debug)]
struct WireLayer(Arc<Mutex<Wire>>);

impl Layer for WireLayer {
    type Sender = Self;

    fn sender(&self) -> Self {
        self.clone()
    }

    fn poll_recv(
        &mut self,
        _: &mut dyn AsyncUdpSocket,
        _: &mut Context<'_>,
        _: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let Some(addr) = self.0.lock().expect("one thread").client else {
            return Poll::Pending;
        };
        let server = Ipv6Addr::from_bits(u128::from(PREFIX) << 64 | 1);
        let meta = &mut meta[0];
        (meta.addr, meta.dst_ip) = (addr, Some(server.into()));
        (meta.len, meta.stride) = (ARRIVED, ARRIVED);
        Poll::Ready(Ok(1))
    }
}

impl SendLayer for WireLayer {
    fn poll_send(
        &mut self,
        _: Pin<&mut dyn UdpSender>,
        transmit: &Transmit<'_>,
        _: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.lock().expect("one thread").source = transmit.src_ip;
        Poll::Ready(Ok(()))
    }
}
