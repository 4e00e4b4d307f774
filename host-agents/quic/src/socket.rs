// SPDX-License-Identifier: Apache-2.0
//! The socket under noq: one port on every address of an AnyIP /64. The source addresses of its packets carry the
//! signals.
//!
//! ```text
//!    client -> VIP ............ DIP      .-> recv: which address did this client use? -> noq sees the client alone
//!    client -> prefix::static . /64::static
//!                 switch                 '-- send: /64::dynamic(SID, RPT, N_AF, N_FF, X) <- noq
//! ```
//!
//! noq treats a changed local address as a migration, which its server forbids. This socket hides the local address
//! from noq, so that a client may move to the preferred address (RFC 9000, section 9.6) on what noq sees as one path.
//! Responses leave from the address at which the client's newest packet arrived ([`crate::migration`]), with X = 0
//! for the VIP and X = 1 for the static cookie's address. Clients that came through a tunnel get their responses
//! through it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};

use crate::gather::{self, GatheringSocket};
use crate::keys::SealedCookies;
use crate::layer::{Layer, Layered, SendLayer};
use crate::meter::batch;
use crate::migration::{LocalAddress, PathTable, TunnelRoute, has_long_header};
use crate::session::long_numbers::LongHeaderBatch;
use crate::udp::UdpSocket;
pub use frontage_quic_signals::prefix::{CookiePrefix, join_address};

mod cookie_prefix;

/// Bytes of the receive buffer, as far as the kernel allows (`net.core.rmem_max`): the first flights of a thousand
/// simultaneous clients.
const RECEIVE_BUFFER: usize = 2 << 20;

/// Sends to clients whose packets come through a tunnel.
pub trait Tunnel: std::fmt::Debug + Send + Sync {
    /// Send `transmit` along `route`. A datagram that cannot be sent is lost, as anywhere in a network.
    fn send(&self, route: TunnelRoute, transmit: &Transmit<'_>);
}

/// The configuration with which a socket responds to each client from the right address.
#[derive(Clone, Debug)]
pub struct Addressing {
    /// Where clients are; shared by all sockets of the server and the meters of its connections.
    pub path_table: Arc<PathTable>,
    /// The addresses that carry cookies; none over IPv4.
    pub cookie_prefix: Option<CookiePrefix>,
    /// The tunnel to other sites, if there is one.
    pub tunnel: Option<Arc<dyn Tunnel>>,
}

/// Datagrams received, by the address at which they arrived.
#[derive(Debug, Default)]
pub struct Counts {
    /// At the server's own address, to which the switch forwards packets for the VIP.
    pub at_vip: AtomicU64,
    /// At the static cookie's address.
    pub at_cookie: AtomicU64,
    /// At an address without cookies: IPv4, or outside the /64.
    pub at_plain: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    /// `None` if noq itself responds from the address at which a packet arrived.
    addressing: Option<Addressing>,
    counts: Arc<Counts>,
}

/// Source and destination of a datagram. Most are the same as those of the previous datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    client: SocketAddr,
    at: IpAddr,
    /// Generation of the keys that classified the destination.
    generation: u64,
}

impl Shared {
    /// Record where `datagrams` arrived, and hide it from noq.
    fn on_received(
        &self,
        datagrams: &[u8],
        meta: &mut RecvMeta,
        last: &mut Option<(Arrival, LocalAddress)>,
    ) {
        let count = meta.len.div_ceil(meta.stride.max(1)) as u64;
        let Some(Addressing {
            path_table,
            cookie_prefix,
            ..
        }) = &self.addressing
        else {
            self.counts.at_plain.fetch_add(count, Relaxed);
            return;
        };
        let Some(at) = meta.dst_ip.take() else {
            return;
        };
        let arrival = Arrival {
            client: meta.addr,
            at,
            generation: cookie_prefix
                .as_ref()
                .map_or(0, |cookie_prefix| cookie_prefix.keys.generation()),
        };
        let address = match *last {
            Some((same, address)) if same == arrival && !has_long_header(datagrams) => address,
            _ => {
                let address = cookie_prefix
                    .as_ref()
                    .map_or(LocalAddress::Plain(at), |prefix| {
                        cookie_prefix::classify(prefix, at)
                    });
                let expected = path_table.on_datagrams(meta.addr, address, datagrams, meta.stride);
                *last = expected.then_some((arrival, address));
                address
            }
        };
        let counter = match address {
            LocalAddress::Vip => &self.counts.at_vip,
            LocalAddress::Cookie(_) => &self.counts.at_cookie,
            LocalAddress::Plain(_) | LocalAddress::Tunnel(_) => &self.counts.at_plain,
        };
        counter.fetch_add(count, Relaxed);
    }
}

/// The layer that makes a UDP socket answer each client from the right address.
#[derive(Debug)]
pub struct SignalLayer {
    shared: Arc<Shared>,
    /// The previous arrival, if the next one like it needs no look-up.
    last: Option<(Arrival, LocalAddress)>,
}

/// The socket that noq gets.
pub type Socket = Layered<SignalLayer>;

impl Socket {
    /// Bind to `address`, preferably a wildcard: `[::]:443` or `0.0.0.0:443`. An IPv6 socket does not receive IPv4.
    /// Without `addressing`, responses leave from the address at which a packet arrived. Must be called within a
    /// Tokio runtime.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn bind(address: SocketAddr, addressing: Option<Addressing>) -> io::Result<Self> {
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(address),
            socket2::Type::DGRAM,
            Some(socket2::Protocol::UDP),
        )?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
            // Responses leave from addresses that no interface has (ipv6(7)).
            socket.set_freebind_v6(true)?;
        }
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        socket.bind(&address.into())?;
        let socket = Box::new(UdpSocket::new(socket.into())?);
        let socket = GatheringSocket::new(socket);
        Ok(Self::over(Box::new(socket), addressing))
    }

    /// Put the layer over another socket.
    pub fn over(inner: Box<dyn AsyncUdpSocket>, addressing: Option<Addressing>) -> Self {
        let shared = Shared {
            addressing,
            counts: Arc::default(),
        };
        let layer = SignalLayer {
            shared: Arc::new(shared),
            last: None,
        };
        Self::new(inner, layer)
    }

    /// Return the counters of this socket.
    pub fn counts(&self) -> Arc<Counts> {
        self.layer().shared.counts.clone()
    }
}

impl Layer for SignalLayer {
    type Sender = Sender;

    fn sender(&self) -> Sender {
        Sender {
            shared: self.shared.clone(),
            remaining: 0,
            address: None,
            source_of: None,
            is_retry: false,
            long_headers: LongHeaderBatch::default(),
            sealed: SealedCookies::default(),
        }
    }

    fn on_received(&mut self, meta: &mut RecvMeta, datagrams: &mut [u8]) {
        self.shared.on_received(datagrams, meta, &mut self.last);
    }
}

/// The sending half of one connection.
#[derive(Debug)]
pub struct Sender {
    shared: Arc<Shared>,
    /// Bytes that remained of the response before the latest batch.
    remaining: u64,
    /// Address from which that batch left, if it was known.
    address: Option<LocalAddress>,
    /// Address from which the client got the packets that were sent last.
    source_of: Option<LocalAddress>,
    /// True if the socket below was busy, so that the same batch comes again.
    is_retry: bool,
    /// The batch with longer headers than noq's, if it needs them.
    long_headers: LongHeaderBatch,
    sealed: SealedCookies,
}

impl SendLayer for Sender {
    fn poll_send(
        &mut self,
        below: Pin<&mut dyn UdpSender>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let summary = batch::finish();
        if let Some(summary) = summary {
            let remaining = summary.remaining.unwrap_or(self.remaining);
            // The response with the least bytes left counts for a gathered batch.
            if remaining < self.remaining || !gather::is_gathering() {
                self.remaining = remaining;
            }
            self.address = summary.address;
        }
        let is_of_connection = summary.is_some() || self.is_retry;
        let mut long_headers = std::mem::take(&mut self.long_headers);
        if long_headers.is_empty() {
            long_headers.fill(transmit);
        }
        let polled = if long_headers.is_empty() {
            self.send(below, transmit, is_of_connection, cx)
        } else {
            self.send_with_long_headers(below, &mut long_headers, transmit, cx)
        };
        self.is_retry = polled.is_pending();
        self.long_headers = long_headers;
        polled
    }
}

impl Sender {
    /// Send what is left of a batch with longer headers.
    fn send_with_long_headers(
        &mut self,
        mut below: Pin<&mut dyn UdpSender>,
        batch: &mut LongHeaderBatch,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(next) = batch.next(transmit) {
            let sent = ready!(self.send(below.as_mut(), &next, true, cx));
            if sent.is_err() {
                batch.clear();
                return Poll::Ready(sent);
            }
            batch.advance();
        }
        Poll::Ready(Ok(()))
    }

    /// Send a batch from the client's address. All its segments have one source, because the kernel cuts them apart
    /// behind the IP header.
    fn send(
        &mut self,
        below: Pin<&mut dyn UdpSender>,
        transmit: &Transmit<'_>,
        is_of_connection: bool,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(addressing) = &self.shared.addressing else {
            return below.poll_send(transmit, cx);
        };
        let is_of_handshake = has_long_header(transmit.contents);
        if !is_of_connection
            && !is_of_handshake
            && addressing.path_table.withholds_reset(transmit.destination)
        {
            return Poll::Ready(Ok(()));
        }
        // A handshake is answered from where it arrived, whatever other connections of the client do.
        let confirmed = self.address.filter(|_| !is_of_handshake);
        let address = confirmed.unwrap_or_else(|| {
            addressing
                .path_table
                .handshake_address(transmit.destination)
        });
        let sealed = &mut self.sealed;
        let mut cookie_source = |epoch| {
            let prefix = addressing.cookie_prefix.as_ref()?;
            Some(prefix.source(epoch, self.remaining, sealed).into())
        };
        let source = match (address, &addressing.tunnel) {
            (LocalAddress::Tunnel(route), Some(tunnel)) => {
                tunnel.send(route, transmit);
                return Poll::Ready(Ok(()));
            }
            (LocalAddress::Tunnel(_), None) => None,
            (LocalAddress::Plain(at), _) => Some(at),
            (LocalAddress::Cookie(epoch), _) => cookie_source(Some(epoch)),
            (LocalAddress::Vip, _) => cookie_source(None),
        };
        let transmit = Transmit {
            src_ip: source.or(transmit.src_ip),
            ..transmit.clone()
        };
        // The newest signals of a batch count.
        if self.source_of == Some(address) {
            gather::set_source(transmit.src_ip);
        }
        self.source_of = Some(address);
        below.poll_send(&transmit, cx)
    }
}
