// SPDX-License-Identifier: Apache-2.0
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

/// Number of source ports, so that routers spread flows (RFC 7348, section 4.1).
const SOURCE_PORTS: usize = 8;
const MAX_DATAGRAM_LEN: usize = 1 << 16;

/// Counters of the tunnel, in datagrams.
#[derive(Debug, Default)]
pub struct Counts {
    /// Received from the tunnel for noq.
    pub received: AtomicU64,
    /// Sent into the tunnel.
    pub sent: AtomicU64,
    /// Received from an unknown peer.
    pub unknown_peer: AtomicU64,
    /// Malformed, by [`Error`].
    pub malformed: [AtomicU64; Error::ALL.len()],
    /// Received for a wrong port, or for an address family without a socket.
    pub no_socket: AtomicU64,
    /// Dropped because the queue to noq was full.
    pub queue_full: AtomicU64,
    /// Not sent: too large, or the socket was not ready.
    pub unsent: AtomicU64,
}

/// A datagram of a client.
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
    /// Id of the replica's site.
    pub site: NonZeroU8,
    /// Counters.
    pub counts: Counts,
    entrance: UdpSocket,
    exits: Vec<UdpSocket>,
    gateway: SocketAddr,
    peers: Vec<IpAddr>,
    /// The service's UDP port.
    port: u16,
    hash: RandomState,
}

impl Tunnel {
    /// Open the sockets. Must be called within a Tokio runtime.
    pub(super) fn open(config: &config::Tunnel, site: NonZeroU8, port: u16) -> io::Result<Self> {
        let bind = |address: SocketAddr| {
            let socket = std::net::UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            if address.is_ipv6() {
                accept_without_checksum(&socket)?;
            }
            UdpSocket::from_std(socket)
        };
        let exits = (0..SOURCE_PORTS).map(|_| bind((config.listen.ip(), 0).into()));
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

    /// Receive datagrams until the queues are closed. There is a queue for each address family that has a socket.
    pub(super) async fn receive(
        self: Arc<Self>,
        v4: Option<mpsc::Sender<Arrival>>,
        v6: Option<mpsc::Sender<Arrival>>,
    ) {
        let mut buffer = vec![0; MAX_DATAGRAM_LEN];
        loop {
            // Errors are ICMP messages about sent datagrams, and do not affect reception.
            let Ok((n, peer)) = self.entrance.recv_from(&mut buffer).await else {
                continue;
            };
            let counter = match self.arrival(&buffer[..n], peer.ip()) {
                Ok(arrival) => {
                    let inbox = if arrival.client.is_ipv4() { &v4 } else { &v6 };
                    match inbox.as_ref().map(|inbox| inbox.try_send(arrival)) {
                        Some(Ok(())) => &self.counts.received,
                        Some(Err(mpsc::error::TrySendError::Full(_))) => &self.counts.queue_full,
                        Some(Err(mpsc::error::TrySendError::Closed(_))) => return,
                        None => &self.counts.no_socket,
                    }
                }
                Err(counter) => counter,
            };
            counter.fetch_add(1, Relaxed);
        }
    }

    /// Decode a datagram of `peer`. Returns the counter of the reason if it is dropped.
    fn arrival(&self, bytes: &[u8], peer: IpAddr) -> Result<Arrival, &AtomicU64> {
        if !self.peers.contains(&peer) {
            return Err(&self.counts.unknown_peer);
        }
        let tunnelled = decode(Encapsulation::Vxlan, bytes)
            .map_err(|error| &self.counts.malformed[error as usize])?;
        let (flow, ecn) = (tunnelled.inner.flow, tunnelled.inner.ecn);
        if flow.destination.port() != self.port {
            return Err(&self.counts.no_socket);
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
    /// Send through this site, which announces the Service Address like the site at which the client's packets enter (Artemis,
    /// table 2), so that responses take no detour. Datagrams that the socket does not accept at once are lost.
    fn send(&self, detour: TunnelRoute, transmit: &Transmit<'_>) {
        let flow = Flow {
            source: detour.service,
            destination: transmit.destination,
        };
        let exit = &self.exits[self.hash.hash_one(flow) as usize % SOURCE_PORTS];
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
