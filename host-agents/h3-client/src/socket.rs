//! The socket under noq: a port for each connection, and two things that noq does not do itself.
//!
//! - Another port without QUIC knowing, as behind a NAT that starts again (RFC 9000, section 9.3.3). noq's own `Endpoint::rebind` is the other thing, a migration
//!   that the client knows of: it takes the next connection id, and sends a PING at once.
//! - Another address of the server's: noq goes on speaking to the one that it was given.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Runtime as _, TokioRuntime, UdpSender};
use socket2::{Domain, Protocol, Type};
use tokio::sync::watch;

/// Bytes that may wait to be read, as far as the kernel allows (net.core.rmem_max): a whole flow-control window.
const RECEIVE_BUFFER: usize = 2 << 20;

/// A UDP socket with a port of its own, at the address from which the kernel reaches `remote`.
fn bind(remote: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match remote {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let probe = UdpSocket::bind(any)?;
    probe.connect(remote)?;
    let mut local = probe.local_addr()?;
    local.set_port(0);
    let socket = socket2::Socket::new(
        Domain::for_address(remote),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.bind(&local.into())?;
    Ok(socket.into())
}

/// A socket towards one server, whose ends can change under noq's hands.
#[derive(Clone, Debug)]
pub struct Socket {
    current: Arc<Mutex<Current>>,
    /// When the first datagram came from another address of the server's.
    moved: watch::Sender<Option<Instant>>,
}

#[derive(Debug)]
struct Current {
    inner: Box<dyn AsyncUdpSocket>,
    /// How often it was exchanged.
    number: u32,
    reader: Option<Waker>,
    /// Where noq sends.
    server: SocketAddr,
    /// Where it goes.
    at: SocketAddr,
}

impl Socket {
    /// A socket towards `server`.
    pub fn new(server: SocketAddr) -> io::Result<Self> {
        let current = Current {
            inner: TokioRuntime.wrap_udp_socket(bind(server)?)?,
            number: 0,
            reader: None,
            server,
            at: server,
        };
        Ok(Self {
            current: Arc::new(Mutex::new(current)),
            moved: watch::Sender::new(None),
        })
    }

    /// When the server was first heard at another address; waits for it.
    pub async fn moved(&self) -> Option<Instant> {
        let mut moved = self.moved.subscribe();
        let when = moved.wait_for(Option::is_some).await;
        when.ok().and_then(|when| *when)
    }

    /// From now on everything comes and goes by another port; what is under way to the old one is lost.
    pub fn rebind(&self) -> io::Result<()> {
        let mut current = self.current();
        current.inner = TokioRuntime.wrap_udp_socket(bind(current.server)?)?;
        current.number += 1;
        if let Some(reader) = current.reader.take() {
            reader.wake();
        }
        Ok(())
    }

    /// From now on everything goes to `at`.
    pub fn go_to(&self, at: SocketAddr) {
        self.current().at = at;
    }

    /// Where noq sends.
    pub fn server(&self) -> SocketAddr {
        self.current().server
    }

    /// The addresses of the client and of the server.
    pub fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        let current = self.current();
        Ok((current.inner.local_addr()?, current.at))
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().expect("nobody panics with it")
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        let current = self.current();
        Box::pin(Sender {
            inner: current.inner.create_sender(),
            number: current.number,
            socket: self.clone(),
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut current = self.current();
        current.reader = Some(cx.waker().clone());
        let n = ready!(current.inner.poll_recv(cx, bufs, meta))?;
        for meta in &mut meta[..n] {
            if meta.addr == current.at && meta.addr != current.server {
                meta.addr = current.server;
                self.moved.send_if_modified(|moved| {
                    let first = moved.is_none();
                    moved.get_or_insert_with(Instant::now);
                    first
                });
            }
        }
        Poll::Ready(Ok(n))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.current().inner.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.current().inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.current().inner.may_fragment()
    }
}

#[derive(Debug)]
struct Sender {
    inner: Pin<Box<dyn UdpSender>>,
    number: u32,
    socket: Socket,
}

impl UdpSender for Sender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let current = self.socket.current();
        let (at, number) = (current.at, current.number);
        let exchanged = (number != self.number).then(|| current.inner.create_sender());
        drop(current);
        if let Some(inner) = exchanged {
            (self.inner, self.number) = (inner, number);
        }
        let transmit = Transmit {
            destination: at,
            ..transmit.clone()
        };
        self.inner.as_mut().poll_send(&transmit, cx)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}
