//! The socket under noq: one port on every address of an AnyIP /64, whose answers carry the signals in their source.
//!
//! ```text
//!    client -> VIP ............ DIP      .-> recv: which address did this client use? -> noq sees the client alone
//!    client -> prefix::static . /64::static
//!                 switch                 '-- send: /64::dynamic(SID, RPT, N_AF, N_FF, X) <- noq
//! ```
//!
//! noq takes a connection for moved if its local address changes, and its server forbids it. Here it sees no local address, if there are several,
//! so that a client may go to the preferred address (RFC 9000, section 9.6) and its path is still the same. A client is answered from the address
//! that its newest packet came to ([`crate::path`]): X = 0 if that was the VIP, 1 if the static cookie's; or through a tunnel, if it came by one.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use frontage_program::socket::set_option;
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Runtime as _, TokioRuntime, UdpSender};

use crate::keys::Sealed;
use crate::meter::batch;
use crate::places::{Detour, Place, Places, is_long};
use crate::session::longer::Batch;
pub use carrier::{Carrier, address};

mod carrier;

/// Bytes that may wait to be read, as far as the kernel allows (`net.core.rmem_max`): all that a thousand clients begin with at once.
const RECEIVE_BUFFER: usize = 2 << 20;

/// The way to clients whose packets come by a detour.
pub trait Tunnel: std::fmt::Debug + Send + Sync {
    /// Sends this by it; what cannot be sent is lost, as anywhere on the way.
    fn send(&self, detour: Detour, transmit: &Transmit<'_>);
}

/// What a socket needs to answer each client from where that is.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// Where clients are; also of the server's other sockets, and of its connections' meters.
    pub places: Arc<Places>,
    /// None over IPv4.
    pub carrier: Option<Carrier>,
    /// If there are detours.
    pub tunnel: Option<Arc<dyn Tunnel>>,
}

/// Datagrams by the address at which they came.
#[derive(Debug, Default)]
pub struct Counts {
    /// To the server's own address, where the switch sends what came to the VIP.
    pub at_vip: AtomicU64,
    /// To the static cookie's address.
    pub at_cookie: AtomicU64,
    /// To an address without cookies: IPv4, or outside of the /64.
    pub at_plain: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    /// None where noq answers from the address that was asked.
    addresses: Option<Addresses>,
    counts: Arc<Counts>,
}

/// Who sent a datagram, and where it came. Most are like the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    client: SocketAddr,
    at: IpAddr,
    /// Of the keys.
    generation: u64,
}

impl Shared {
    /// Notes where `datagrams` came, unless noq is to.
    fn received(&self, datagrams: &[u8], meta: &mut RecvMeta, last: &mut Option<(Arrival, Place)>) {
        let count = meta.len.div_ceil(meta.stride.max(1)) as u64;
        let Some(Addresses {
            places, carrier, ..
        }) = &self.addresses
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
            generation: carrier
                .as_ref()
                .map_or(0, |carrier| carrier.keys.generation()),
        };
        let place = match *last {
            Some((same, place)) if same == arrival && !is_long(datagrams) => place,
            _ => {
                let place = carrier
                    .as_ref()
                    .map_or(Place::Plain(at), |carrier| carrier.place(at));
                let expected = places.came(meta.addr, place, datagrams, meta.stride);
                *last = expected.then_some((arrival, place));
                place
            }
        };
        let counter = match place {
            Place::Vip => &self.counts.at_vip,
            Place::Cookie(_) => &self.counts.at_cookie,
            Place::Plain(_) | Place::Detour(_) => &self.counts.at_plain,
        };
        counter.fetch_add(count, Relaxed);
    }
}

/// The socket that noq gets.
#[derive(Debug)]
pub struct Socket {
    inner: Box<dyn AsyncUdpSocket>,
    shared: Arc<Shared>,
    /// What came last.
    last: Option<(Arrival, Place)>,
}

impl Socket {
    /// Binds to `address`, whose IP address is best the wildcard: `[::]:443` or `0.0.0.0:443`. An IPv6 socket takes no IPv4. Without
    /// `addresses`, answers come from the address that was asked. Must be called within a Tokio runtime.
    pub fn bind(address: SocketAddr, addresses: Option<Addresses>) -> io::Result<Self> {
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(address),
            socket2::Type::DGRAM,
            Some(socket2::Protocol::UDP),
        )?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
            // Answers leave from addresses that no interface has (ipv6(7)).
            set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_FREEBIND, 1)?;
        }
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        socket.bind(&address.into())?;
        let socket: UdpSocket = socket.into();
        Ok(Self::over(TokioRuntime.wrap_udp_socket(socket)?, addresses))
    }

    /// The same over another socket.
    pub fn over(inner: Box<dyn AsyncUdpSocket>, addresses: Option<Addresses>) -> Self {
        let shared = Shared {
            addresses,
            counts: Arc::default(),
        };
        Self {
            inner,
            shared: Arc::new(shared),
            last: None,
        }
    }

    /// What this socket counts.
    pub fn counts(&self) -> Arc<Counts> {
        self.shared.counts.clone()
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender {
            inner: self.inner.create_sender(),
            shared: self.shared.clone(),
            remaining: 0,
            place: None,
            again: false,
            longer: Batch::default(),
            sealed: Sealed::default(),
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let n = ready!(self.inner.poll_recv(cx, bufs, meta))?;
        for (meta, buffer) in meta[..n].iter_mut().zip(bufs) {
            let datagrams = &buffer[..meta.len];
            self.shared.received(datagrams, meta, &mut self.last);
        }
        Poll::Ready(Ok(n))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

/// A connection's own.
#[derive(Debug)]
struct Sender {
    inner: Pin<Box<dyn UdpSender>>,
    shared: Arc<Shared>,
    /// Bytes that were left before its last batch.
    remaining: u64,
    /// Where that left from, if it was known.
    place: Option<Place>,
    /// The last batch was not taken, and comes again.
    again: bool,
    /// It, if its packets are longer than noq's.
    longer: Batch,
    sealed: Sealed,
}

impl UdpSender for Sender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let told = batch::send();
        if let Some(told) = told {
            this.remaining = told.remaining.unwrap_or(this.remaining);
            this.place = told.place;
        }
        let is_of_connection = told.is_some() || this.again;
        let mut longer = std::mem::take(&mut this.longer);
        if longer.is_empty() {
            longer.make(transmit);
        }
        let polled = if longer.is_empty() {
            this.send(transmit, is_of_connection, cx)
        } else {
            this.send_longer(&mut longer, transmit, cx)
        };
        this.again = polled.is_pending();
        this.longer = longer;
        polled
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}

impl Sender {
    /// What is left of a connection's batch.
    fn send_longer(
        &mut self,
        longer: &mut Batch,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(next) = longer.next(transmit) {
            let sent = ready!(self.send(&next, true, cx));
            if sent.is_err() {
                longer.clear();
                return Poll::Ready(sent);
            }
            longer.advance();
        }
        Poll::Ready(Ok(()))
    }

    /// All segments of a batch get the same source: the kernel cuts them apart behind the IP header.
    fn send(
        &mut self,
        transmit: &Transmit<'_>,
        is_of_connection: bool,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(addresses) = &self.shared.addresses else {
            return self.inner.as_mut().poll_send(transmit, cx);
        };
        let is_of_handshake = is_long(transmit.contents);
        if !is_of_connection
            && !is_of_handshake
            && addresses.places.withholds_reset(transmit.destination)
        {
            return Poll::Ready(Ok(()));
        }
        // A handshake is answered where it came, whatever other connections of the client's do.
        let settled = self.place.filter(|_| !is_of_handshake);
        let place = settled.unwrap_or_else(|| addresses.places.opening(transmit.destination));
        let sealed = &mut self.sealed;
        let mut of = |epoch| {
            let carrier = addresses.carrier.as_ref()?;
            Some(carrier.source(epoch, self.remaining, sealed).into())
        };
        let own = match (place, &addresses.tunnel) {
            (Place::Detour(detour), Some(tunnel)) => {
                tunnel.send(detour, transmit);
                return Poll::Ready(Ok(()));
            }
            (Place::Detour(_), None) => None,
            (Place::Plain(at), _) => Some(at),
            (Place::Cookie(epoch), _) => of(Some(epoch)),
            (Place::Vip, _) => of(None),
        };
        let transmit = Transmit {
            src_ip: own.or(transmit.src_ip),
            ..transmit.clone()
        };
        self.inner.as_mut().poll_send(&transmit, cx)
    }
}
