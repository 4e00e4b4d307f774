//! UDP sockets, and one whose port changes as behind a NAT that starts again: without QUIC knowing (RFC 9000, section 9.3.3).
//!
//! noq's own `Endpoint::rebind` is the other thing, a migration that the client knows of: it takes the next connection id and asks whether the path works.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Runtime as _, TokioRuntime, UdpSender};
use socket2::{Domain, Protocol, Socket, Type};

/// Bytes that may wait to be read, as far as the kernel allows (net.core.rmem_max): a whole flow-control window.
const RECEIVE_BUFFER: usize = 2 << 20;

/// Lets this process have as many sockets open as it may.
pub fn raise_limit() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls take a pointer to a structure that outlives them; if they fail, the limit stays.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// A socket with a port of its own, at the address from which the kernel reaches `remote`.
pub fn bind(remote: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match remote {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let probe = UdpSocket::bind(any)?;
    probe.connect(remote)?;
    let mut local = probe.local_addr()?;
    local.set_port(0);
    let socket = Socket::new(
        Domain::for_address(remote),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.bind(&local.into())?;
    Ok(socket.into())
}

/// A socket that can be exchanged for another under noq's hands.
#[derive(Clone, Debug)]
pub struct Replaceable(Arc<Mutex<Current>>);

#[derive(Debug)]
struct Current {
    socket: Box<dyn AsyncUdpSocket>,
    number: u32,
    reader: Option<Waker>,
}

impl Replaceable {
    /// A socket towards `remote`.
    pub fn new(remote: SocketAddr) -> io::Result<Self> {
        let current = Current {
            socket: TokioRuntime.wrap_udp_socket(bind(remote)?)?,
            number: 0,
            reader: None,
        };
        Ok(Self(Arc::new(Mutex::new(current))))
    }

    /// From now on everything comes and goes by another port; what is under way to the old one is lost.
    pub fn replace(&self, remote: SocketAddr) -> io::Result<()> {
        let socket = TokioRuntime.wrap_udp_socket(bind(remote)?)?;
        let mut current = self.current();
        current.socket = socket;
        current.number += 1;
        if let Some(reader) = current.reader.take() {
            reader.wake();
        }
        Ok(())
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.0.lock().expect("nobody panics with it")
    }
}

impl AsyncUdpSocket for Replaceable {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        let current = self.current();
        Box::pin(Sender {
            inner: current.socket.create_sender(),
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
        current.socket.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.current().socket.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.current().socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.current().socket.may_fragment()
    }
}

#[derive(Debug)]
struct Sender {
    inner: Pin<Box<dyn UdpSender>>,
    number: u32,
    socket: Replaceable,
}

impl UdpSender for Sender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let current = self.socket.current();
        if current.number != self.number {
            let (inner, number) = (current.socket.create_sender(), current.number);
            drop(current);
            (self.inner, self.number) = (inner, number);
        } else {
            drop(current);
        }
        self.inner.as_mut().poll_send(transmit, cx)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}
