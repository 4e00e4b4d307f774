// SPDX-License-Identifier: Apache-2.0
//! The socket under noq, with one port per connection, and with two operations that noq lacks.
//!
//! [`Socket::rebind`] changes the local port without telling QUIC, as a NAT rebinding does (RFC 9000, section 9.3.3). The operation
//! of that name in noq is a migration by the client: it switches to the next connection id and sends a PING.
//! [`Socket::redirect`] changes the server's address, while noq keeps the one with which it connected. Before that,
//! [`Socket::begin_probe`] sends the packets of a path validation to the new address.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use frontage_quic::relocate::Relocator;
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Runtime as _, TokioRuntime, UdpSender};
use parking_lot::{Mutex, MutexGuard};
use socket2::{Domain, Protocol, Type};
use tokio::sync::watch;

/// Receive buffer in bytes, capped by `net.core.rmem_max`: a whole flow-control window.
const RECEIVE_BUFFER: usize = 2 << 20;

/// Opens a UDP socket with a free port, bound to the address from which the kernel reaches `remote`.
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

/// A socket to one server. Its local port and the server's address can change without noq's knowledge.
#[derive(Clone, Debug)]
pub struct Socket {
    state: Arc<Mutex<State>>,
    /// When the first datagram arrived from the address to which the socket was redirected.
    migrated: watch::Sender<Option<Instant>>,
}

#[derive(Debug)]
struct State {
    inner: Box<dyn AsyncUdpSocket>,
    /// How often `inner` was replaced.
    generation: u32,
    reader: Option<Waker>,
    /// Server address that noq uses.
    nominal_server: SocketAddr,
    /// Server address that packets are sent to.
    actual_server: SocketAddr,
    /// Server address that packets were sent to before. Some of the server's packets from there may still be under way.
    previous_server: Option<SocketAddr>,
    /// Server address that is being validated, and what recognizes the packets to it.
    probe: Option<(SocketAddr, Relocator)>,
}

impl State {
    /// Returns true if noq must take a datagram from `address` for one of the server. While an address is validated, these
    /// are all datagrams, because the response may come from another address (RFC 9000, section 8.2.3); noq authenticates
    /// them.
    fn is_server(&self, address: SocketAddr) -> bool {
        self.probe.is_some()
            || address == self.actual_server
            || self.previous_server == Some(address)
    }

    /// Returns the address to which to send `datagram`.
    fn destination(&self, datagram: &[u8]) -> SocketAddr {
        match &self.probe {
            Some((address, relocator)) if relocator.is_probe(datagram) => *address,
            _ => self.actual_server,
        }
    }
}

impl Socket {
    /// Opens a socket to `server`. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn new(server: SocketAddr) -> io::Result<Self> {
        let state = State {
            inner: TokioRuntime.wrap_udp_socket(bind(server)?)?,
            generation: 0,
            reader: None,
            nominal_server: server,
            actual_server: server,
            previous_server: None,
            probe: None,
        };
        Ok(Self {
            state: Arc::new(Mutex::new(state)),
            migrated: watch::Sender::new(None),
        })
    }

    /// Waits for the first datagram from the address to which the socket was redirected; returns its time of arrival.
    pub async fn migrated(&self) -> Option<Instant> {
        let mut migrated = self.migrated.subscribe();
        let when = migrated.wait_for(Option::is_some).await;
        when.ok().and_then(|when| *when)
    }

    /// Switches to another local port. Datagrams in flight to the old one are lost.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn rebind(&self) -> io::Result<()> {
        let mut state = self.state();
        state.inner = TokioRuntime.wrap_udp_socket(bind(state.nominal_server)?)?;
        state.generation += 1;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
        Ok(())
    }

    /// Sends all further packets to `server`.
    pub fn redirect(&self, server: SocketAddr) {
        let mut state = self.state();
        state.previous_server = Some(state.actual_server);
        state.actual_server = server;
    }

    /// Sends the packets that `relocator` recognizes as probes to `server`, until [`Socket::end_probe`]. noq must send
    /// one datagram at a time.
    pub fn begin_probe(&self, server: SocketAddr, relocator: Relocator) {
        self.state().probe = Some((server, relocator));
    }

    /// Ends the validation of another address.
    pub fn end_probe(&self) {
        self.state().probe = None;
    }

    /// Returns the server address that packets are sent to.
    pub fn server(&self) -> SocketAddr {
        self.state().actual_server
    }

    /// Returns the server address that noq uses.
    pub fn nominal_server(&self) -> SocketAddr {
        self.state().nominal_server
    }

    /// Returns the current addresses of the client and of the server.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        let state = self.state();
        Ok((state.inner.local_addr()?, state.actual_server))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        let state = self.state();
        Box::pin(Sender {
            inner: state.inner.create_sender(),
            generation: state.generation,
            socket: self.clone(),
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.state();
        state.reader = Some(cx.waker().clone());
        let n = ready!(state.inner.poll_recv(cx, bufs, meta))?;
        for meta in &mut meta[..n] {
            if meta.addr == state.actual_server && meta.addr != state.nominal_server {
                self.migrated.send_if_modified(|migrated| {
                    let is_first = migrated.is_none();
                    migrated.get_or_insert_with(Instant::now);
                    is_first
                });
            }
            if state.is_server(meta.addr) {
                meta.addr = state.nominal_server;
            }
        }
        Poll::Ready(Ok(n))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.state().inner.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.state().inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.state().inner.may_fragment()
    }
}

#[derive(Debug)]
struct Sender {
    inner: Pin<Box<dyn UdpSender>>,
    generation: u32,
    socket: Socket,
}

impl UdpSender for Sender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let state = self.socket.state();
        let (destination, generation) = (state.destination(transmit.contents), state.generation);
        let replaced = (generation != self.generation).then(|| state.inner.create_sender());
        drop(state);
        if let Some(inner) = replaced {
            (self.inner, self.generation) = (inner, generation);
        }
        let transmit = Transmit {
            destination,
            ..transmit.clone()
        };
        self.inner.as_mut().poll_send(&transmit, cx)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}
