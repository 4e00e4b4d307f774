//! The replica's end of the tunnel (VXLAN; crate `frontage-tunnel`).

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_daemon::socket::accept_without_checksum;
use frontage_quic::migration::TunnelRoute;
use frontage_quic::socket;
use frontage_tunnel::{Encapsulation, Error, Flow, Head, decode, vxlan};
use noq::udp::{EcnCodepoint, Transmit};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use super::config;

/// Ports from which answers leave, so that routers on the way spread flows (RFC 7348, section 4.1).
const PORTS: usize = 8;
const LARGEST: usize = 1 << 16;

/// What the tunnel counts, in datagrams.
#[derive(Debug, Default)]
pub struct Counts {
    /// Out of the tunnel, for noq.
    pub received: AtomicU64,
    /// Into the tunnel.
    pub sent: AtomicU64,
    /// From somebody who is no peer.
    pub stranger: AtomicU64,
    /// Malformed, by [`Error`].
    pub malformed: [AtomicU64; Error::ALL.len()],
    /// For another port than the service's, or a family without a socket.
    pub nobody: AtomicU64,
    /// More than noq took.
    pub full: AtomicU64,
    /// Not sent: too large for the way, or the network did not take it.
    pub unsent: AtomicU64,
}

/// A client's datagram.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) client: SocketAddr,
    pub(super) detour: TunnelRoute,
    pub(super) ecn: Option<EcnCodepoint>,
    pub(super) payload: Box<[u8]>,
}

/// The replica's end.
#[derive(Debug)]
pub struct Tunnel {
    /// Its site.
    pub site: NonZeroU8,
    /// What is counted.
    pub counts: Counts,
    entrance: UdpSocket,
    exits: Vec<UdpSocket>,
    gateway: SocketAddr,
    peers: Vec<IpAddr>,
    /// The service's.
    port: u16,
    hash: RandomState,
}

impl Tunnel {
    /// Opens its sockets. Must be called within a Tokio runtime.
    pub(super) fn open(config: &config::Tunnel, site: NonZeroU8, port: u16) -> io::Result<Self> {
        let bind = |address: SocketAddr| {
            let socket = std::net::UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            if address.is_ipv6() {
                accept_without_checksum(&socket)?;
            }
            UdpSocket::from_std(socket)
        };
        let exits = (0..PORTS).map(|_| bind((config.listen.ip(), 0).into()));
        Ok(Self {
            site,
            counts: Counts::default(),
            entrance: bind(config.listen)?,
            exits: exits.collect::<io::Result<_>>()?,
            gateway: (config.gateway, vxlan::PORT).into(),
            peers: config.peers.clone(),
            port,
            hash: RandomState::new(),
        })
    }

    /// Takes out what comes in, until nobody waits for it; of IPv4 and of IPv6 where there is a socket.
    pub(super) async fn receive(
        self: Arc<Self>,
        v4: Option<mpsc::Sender<Arrival>>,
        v6: Option<mpsc::Sender<Arrival>>,
    ) {
        let mut buffer = vec![0; LARGEST];
        loop {
            // An error is of an answer that somebody did not take (ICMP): nothing to wait for.
            let Ok((n, peer)) = self.entrance.recv_from(&mut buffer).await else {
                continue;
            };
            let counter = match self.arrival(&buffer[..n], peer.ip()) {
                Ok(arrival) => {
                    let inbox = if arrival.client.is_ipv4() { &v4 } else { &v6 };
                    match inbox.as_ref().map(|inbox| inbox.try_send(arrival)) {
                        Some(Ok(())) => &self.counts.received,
                        Some(Err(mpsc::error::TrySendError::Full(_))) => &self.counts.full,
                        Some(Err(mpsc::error::TrySendError::Closed(_))) => return,
                        None => &self.counts.nobody,
                    }
                }
                Err(counter) => counter,
            };
            counter.fetch_add(1, Relaxed);
        }
    }

    /// What `bytes` of `peer` hold, or the counter of why not.
    fn arrival(&self, bytes: &[u8], peer: IpAddr) -> Result<Arrival, &AtomicU64> {
        if !self.peers.contains(&peer) {
            return Err(&self.counts.stranger);
        }
        let tunnelled = decode(Encapsulation::Vxlan, bytes)
            .map_err(|error| &self.counts.malformed[error as usize])?;
        let (flow, ecn) = (tunnelled.inner.flow, tunnelled.inner.ecn);
        if flow.destination.port() != self.port {
            return Err(&self.counts.nobody);
        }
        Ok(Arrival {
            client: flow.source,
            detour: TunnelRoute {
                origin: tunnelled.origin,
                service: flow.destination,
            },
            ecn: EcnCodepoint::from_bits(ecn),
            payload: tunnelled.inner.payload.into(),
        })
    }
}

impl socket::Tunnel for Tunnel {
    /// It leaves by this site, which announces the Service Address like the one where the client's packets enter (Artemis, table 2), so that no answer
    /// makes the detour back. What the socket does not take at once is lost, as anywhere on the way.
    fn send(&self, detour: TunnelRoute, transmit: &Transmit<'_>) {
        let flow = Flow {
            source: detour.service,
            destination: transmit.destination,
        };
        let exit = &self.exits[self.hash.hash_one(flow) as usize % PORTS];
        let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
        let size = transmit.segment_size.unwrap_or(transmit.contents.len());
        for payload in transmit.contents.chunks(size.max(1)) {
            let sent = Head::new(Encapsulation::Vxlan, self.site, flow, ecn, payload)
                .ok()
                .and_then(|head| {
                    exit.try_send_to(&[&head, payload].concat(), self.gateway)
                        .ok()
                });
            let counter = if sent.is_some() {
                &self.counts.sent
            } else {
                &self.counts.unsent
            };
            counter.fetch_add(1, Relaxed);
        }
    }
}
