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
//! that it used last: X = 0 if that was the VIP, 1 if the static cookie's. What comes late to the VIP says nothing ([`crate::stragglers`]).

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

use crate::clients::{Clients, Known, Says, Used};
use crate::keys::Sealed;
use crate::meter::batch;
use crate::stragglers::Shape;
pub use carrier::{Carrier, address};

mod carrier;

/// Bytes that may wait to be read, as far as the kernel allows (`net.core.rmem_max`): all that a thousand clients begin with at once.
const RECEIVE_BUFFER: usize = 2 << 20;

/// Datagrams by the address at which they came, and clients that moved.
#[derive(Debug, Default)]
pub struct Counts {
    /// To the server's own address, where the switch sends what came to the VIP.
    pub at_vip: AtomicU64,
    /// To the static cookie's address.
    pub at_cookie: AtomicU64,
    /// To an address without cookies: IPv4, or outside of the /64.
    pub at_plain: AtomicU64,
    /// Clients that went from the VIP to the static cookie's address.
    pub moved: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    /// With the clients to whom it writes.
    carrier: Option<(Carrier, Clients)>,
    counts: Arc<Counts>,
}

/// Who sent a datagram, and where it came. Most are like the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    client: SocketAddr,
    at: IpAddr,
    shape: Shape,
    /// Of the keys.
    generation: u64,
}

impl Shared {
    /// Remembers where `datagrams` came, unless noq is to.
    fn received(&self, datagrams: &[u8], meta: &mut RecvMeta, last: &mut Option<(Arrival, Used)>) {
        let count = meta.len.div_ceil(meta.stride.max(1)) as u64;
        let Some((carrier, clients)) = &self.carrier else {
            self.counts.at_plain.fetch_add(count, Relaxed);
            return;
        };
        let Some(at) = meta.dst_ip.take() else {
            return;
        };
        let arrival = Arrival {
            client: meta.addr,
            at,
            shape: Shape::of_batch(datagrams, meta.stride),
            generation: carrier.keys.generation(),
        };
        let used = match *last {
            Some((same, used)) if same == arrival => used,
            _ => {
                let used = carrier.used(at);
                let says = clients.used(meta.addr, used, arrival.shape);
                let moved = says == Says::Moved;
                self.counts.moved.fetch_add(u64::from(moved), Relaxed);
                // The next one may be one too many to be late.
                *last = (says != Says::Nothing).then_some((arrival, used));
                used
            }
        };
        let counter = match used {
            Used::Vip => &self.counts.at_vip,
            Used::Cookie(_) => &self.counts.at_cookie,
            Used::Plain(_) => &self.counts.at_plain,
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
    last: Option<(Arrival, Used)>,
}

impl Socket {
    /// Binds to `address`, whose IP address is best the wildcard: `[::]:443` or `0.0.0.0:443`. An IPv6 socket takes no IPv4. Without
    /// a `carrier`, answers come from the address that was asked. Must be called within a Tokio runtime.
    pub fn bind(address: SocketAddr, carrier: Option<Carrier>) -> io::Result<Self> {
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
        Ok(Self::over(TokioRuntime.wrap_udp_socket(socket)?, carrier))
    }

    /// The same over another socket.
    pub fn over(inner: Box<dyn AsyncUdpSocket>, carrier: Option<Carrier>) -> Self {
        let shared = Shared {
            carrier: carrier.map(|carrier| (carrier, Clients::default())),
            counts: Arc::default(),
        };
        Self {
            inner,
            shared: Arc::new(shared),
            last: None,
        }
    }

    /// Where clients of this socket came.
    pub fn arrivals(&self) -> Arrivals {
        Arrivals(self.shared.clone())
    }

    /// What this socket counts.
    pub fn counts(&self) -> Arc<Counts> {
        self.shared.counts.clone()
    }
}

/// Where clients came to a socket.
#[derive(Clone, Debug)]
pub struct Arrivals(Arc<Shared>);

impl Arrivals {
    /// Whether `client` used the static cookie's address last.
    pub fn at_cookie(&self, client: SocketAddr) -> bool {
        let carrier = self.0.carrier.as_ref();
        carrier.is_some_and(|(_, clients)| matches!(clients.get(client), Used::Cookie(_)))
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender {
            inner: self.inner.create_sender(),
            shared: self.shared.clone(),
            remaining: 0,
            client: Known::default(),
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
    client: Known,
    sealed: Sealed,
}

impl Sender {
    /// The source of a batch to `client`, unless noq knows it.
    fn source(&mut self, client: SocketAddr) -> Option<IpAddr> {
        let (carrier, clients) = self.shared.carrier.as_ref()?;
        let mut of = |epoch| {
            carrier
                .source(epoch, self.remaining, &mut self.sealed)
                .into()
        };
        Some(match self.client.used(clients, client) {
            Used::Plain(at) => at,
            Used::Cookie(epoch) => of(Some(epoch)),
            Used::Vip => of(None),
        })
    }
}

impl UdpSender for Sender {
    /// All segments of a batch get the same source: the kernel cuts them apart behind the IP header.
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.remaining = batch::send().unwrap_or(this.remaining);
        let own = this.source(transmit.destination);
        let transmit = Transmit {
            src_ip: own.or(transmit.src_ip),
            ..transmit.clone()
        };
        this.inner.as_mut().poll_send(&transmit, cx)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}
