// SPDX-License-Identifier: Apache-2.0
//! A UDP socket on Tokio with fewer system calls than noq's own: a short batch of received datagrams shows that the socket is
//! empty, and a send does not first ask whether the socket is busy.

use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use noq::udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState, is_msg_size_err};
use noq::{AsyncUdpSocket, UdpSender};
use tokio::io::Interest;

/// A UDP socket.
#[derive(Clone, Debug)]
pub struct UdpSocket {
    io: Arc<tokio::net::UdpSocket>,
    state: Arc<UdpSocketState>,
    /// True once an error was logged: remote hosts can provoke some errors at will.
    has_failed: Arc<AtomicBool>,
}

impl UdpSocket {
    /// Use `socket`. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        Ok(Self {
            state: Arc::new(UdpSocketState::new((&socket).into())?),
            io: Arc::new(tokio::net::UdpSocket::from_std(socket)?),
            has_failed: Arc::default(),
        })
    }

    fn send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let send = || self.state.try_send((&*self.io).into(), transmit);
        self.io.try_io(Interest::WRITABLE, send)
    }
}

impl AsyncUdpSocket for UdpSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender {
            socket: self.clone(),
            writable: None,
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let full = buffers.len().min(BATCH_SIZE);
        loop {
            ready!(self.io.poll_recv_ready(cx))?;
            let mut received = 0;
            let result = self.io.try_io(Interest::READABLE, || {
                received = self.state.recv((&*self.io).into(), buffers, meta)?;
                // Fewer datagrams than there is space for: the socket is empty.
                if received < full {
                    return Err(ErrorKind::WouldBlock.into());
                }
                Ok(())
            });
            match result {
                Err(error) if error.kind() != ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(error));
                }
                _ if received > 0 => return Poll::Ready(Ok(received)),
                _ => {}
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.state.gro_segments()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }
}

type Writable = Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>;

/// The sending half of one task.
struct Sender {
    socket: UdpSocket,
    /// Waits while the socket is busy.
    writable: Option<Writable>,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Sender");
        debug.field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl UdpSender for Sender {
    /// Send `transmit`. An error means that it is lost, as anywhere in a network. Packets that probe for a larger MTU may be
    /// too large for the interface.
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(writable) = &mut self.writable {
                let is_writable = ready!(writable.as_mut().poll(cx));
                self.writable = None;
                is_writable?;
            }
            match self.socket.send(transmit) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let io = self.socket.io.clone();
                    self.writable = Some(Box::pin(async move { io.writable().await }));
                }
                Err(error) => {
                    let has_failed = &self.socket.has_failed;
                    if !is_msg_size_err(&error) && !has_failed.swap(true, Relaxed) {
                        tracing::warn!("cannot send to {}: {error}", transmit.destination);
                    }
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.socket.state.max_gso_segments()
    }
}
