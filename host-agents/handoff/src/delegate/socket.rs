// SPDX-License-Identifier: Apache-2.0
//! The layer below noq. It receives the packets of the synthetic clients from memory, and sends noq's packets to the real
//! clients. noq knows each client by a stand-in address, so that the client can move, and so that several connections can
//! belong to the same client.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::task::{Context, Poll};

use frontage_quic::layer::{Layer, SendLayer};
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use parking_lot::RwLock;
use rustc_hash::FxBuildHasher;
use tokio::sync::mpsc::UnboundedReceiver;

use super::number_pool::UnnumberedPacket;
use super::sealer::{self, Sealer};
use super::synthetic_client::Datagram;

/// Prefix of the stand-in addresses: the discard-only block, to which no packet is ever sent (RFC 6666).
const STAND_IN_PREFIX: u128 = 0x0100 << 112;
/// Port of a connection's first stand-in.
const FIRST_PORT: u16 = 443;

/// Addresses and sealer of one connection.
#[derive(Clone)]
struct Target {
    client: SocketAddr,
    /// Source address of the packets.
    server: IpAddr,
    sealer: Arc<Sealer>,
}

/// Targets by the IP address of the stand-in.
#[derive(Default)]
pub struct Routes(RwLock<HashMap<IpAddr, Target, FxBuildHasher>>);

impl Routes {
    fn get(&self, address: IpAddr) -> Option<Target> {
        self.0.read().get(&address).cloned()
    }

    /// Return destination and source of packets to the client whose stand-in is `address`.
    pub fn addresses(&self, address: IpAddr) -> Option<(SocketAddr, IpAddr)> {
        self.get(address)
            .map(|target| (target.client, target.server))
    }
}

/// A connection's entry in [`Routes`], until it is dropped.
pub struct Route {
    address: IpAddr,
    port: AtomicU16,
    sealer: Arc<Sealer>,
    routes: Arc<Routes>,
}

impl Route {
    /// Create the route of the `n`th connection.
    pub fn new(
        n: u64,
        client: SocketAddr,
        server: SocketAddr,
        sealer: &Arc<Sealer>,
        routes: &Arc<Routes>,
    ) -> Self {
        let route = Self {
            address: Ipv6Addr::from_bits(STAND_IN_PREFIX | u128::from(n)).into(),
            port: AtomicU16::new(FIRST_PORT),
            sealer: sealer.clone(),
            routes: routes.clone(),
        };
        route.set(client, server);
        route
    }

    /// Return the address by which noq knows the client now.
    pub fn stand_in(&self) -> SocketAddr {
        (self.address, self.port.load(Relaxed)).into()
    }

    /// Set the addresses. Returns the new stand-in if the client's IP address has changed. If only the port has changed, a NAT
    /// rebinding is likely, and noq need not notice (RFC 9000, section 9.4).
    pub fn set(&self, client: SocketAddr, server: SocketAddr) -> Option<SocketAddr> {
        let target = Target {
            client,
            server: server.ip(),
            sealer: self.sealer.clone(),
        };
        let before = self.routes.0.write().insert(self.address, target)?;
        if before.client.ip() == client.ip() {
            return None;
        }
        self.port.fetch_add(1, Relaxed);
        Some(self.stand_in())
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.routes.0.write().remove(&self.address);
    }
}

/// The layer between noq's endpoint and the real socket. It receives from the synthetic clients, and sends on the socket.
#[derive(Debug)]
pub struct StandInLayer {
    inbox: UnboundedReceiver<Datagram>,
    routes: Arc<Routes>,
}

impl StandInLayer {
    pub fn new(inbox: UnboundedReceiver<Datagram>, routes: Arc<Routes>) -> Self {
        Self { inbox, routes }
    }
}

impl Layer for StandInLayer {
    type Sender = Sender;

    fn sender(&self) -> Sender {
        Sender {
            routes: self.routes.clone(),
            sealed: Vec::new(),
        }
    }

    fn poll_recv(
        &mut self,
        _: &mut dyn AsyncUdpSocket,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut filled = 0;
        for (buffer, meta) in buffers.iter_mut().zip(meta) {
            let Poll::Ready(Some((addr, datagram))) = self.inbox.poll_recv(cx) else {
                break;
            };
            buffer[..datagram.len()].copy_from_slice(&datagram);
            *meta = RecvMeta::default();
            (meta.addr, meta.len, meta.stride) = (addr, datagram.len(), datagram.len());
            filled += 1;
        }
        match filled {
            0 => Poll::Pending,
            _ => Poll::Ready(Ok(filled)),
        }
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Routes(..)")
    }
}

/// The sending half of [`StandInLayer`].
#[derive(Debug)]
pub struct Sender {
    routes: Arc<Routes>,
    /// The segments of a batch that are sent, if not all are.
    sealed: Vec<u8>,
}

impl SendLayer for Sender {
    fn poll_send(
        &mut self,
        below: Pin<&mut dyn UdpSender>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let len = transmit.contents.len();
        let segment_len = transmit.segment_size.unwrap_or(len);
        let segments = || transmit.contents.chunks(segment_len);
        let Some(target) = self.routes.get(transmit.destination.ip()) else {
            return Poll::Ready(Ok(()));
        };
        if let Some(pool) = target.sealer.pool() {
            let waiting = segments().filter(|segment| sealer::is_unnumbered(segment));
            pool.push(waiting.map(|segment| UnnumberedPacket {
                octets: segment.into(),
                ecn: transmit.ecn,
            }));
            return Poll::Ready(Ok(()));
        }
        let contents = if segments().all(sealer::is_sealed) {
            transmit.contents
        } else {
            self.sealed.clear();
            for segment in segments().filter(|segment| sealer::is_sealed(segment)) {
                self.sealed.extend(segment);
            }
            &self.sealed
        };
        if contents.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let transmit = Transmit {
            destination: target.client,
            ecn: transmit.ecn,
            contents,
            segment_size: transmit.segment_size.filter(|size| *size < contents.len()),
            src_ip: Some(target.server),
        };
        below.poll_send(&transmit, cx)
    }
}
