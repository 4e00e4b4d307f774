// SPDX-License-Identifier: Apache-2.0
//! The datagrams of one QUIC connection: through the proxy, and on the direct path.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd as _, RawFd};
use std::rc::Rc;
use std::time::Instant;

use frontage_quicsocks_client::flow::{Flow, Received};
use frontage_quicsocks_client::socks::Destination;
use frontage_quicsocks_client::{placeholder, udp};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use crate::association::Association;
use crate::failure::Failure;

/// `enum fqs_path`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Path {
    Proxied,
    Direct,
}

/// `enum fqs_direct_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum DirectState {
    Resolving,
    Probing,
    Unreachable,
    Reachable,
    InUse,
}

/// `struct fqs_connection`.
#[derive(Debug)]
pub struct Connection {
    association: Rc<Association>,
    flow: Flow,
    /// Port of the server.
    port: u16,
    /// Connected to the server, once the proxy has reported its address.
    direct: Option<UdpSocket>,
    is_direct_in_use: bool,
    is_released: bool,
    /// Ready if one of the sockets is.
    epoll: Epoll,
}

impl Connection {
    /// Begin a connection to a name.
    ///
    /// # Errors
    /// Those of `fqs_connect()`.
    pub fn open(association: &Rc<Association>, name: &str, port: u16) -> Result<Self, Failure> {
        let destination = Destination::name(name.as_bytes(), port).map_err(|_| Failure::Invalid)?;
        if port == 0 || name.len() > 255 {
            return Err(Failure::Invalid);
        }
        let relay = association.socket.peer_addr()?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(io::Error::from)?;
        let readable = EpollEvent::new(EpollFlags::EPOLLIN, 0);
        let added = epoll
            .add(&association.socket, readable)
            .and_then(|()| epoll.add(association.control(), readable));
        added.map_err(io::Error::from)?;
        association.reserve()?;
        Ok(Self {
            association: association.clone(),
            flow: Flow::new(destination, relay, rand::random()),
            port,
            direct: None,
            is_direct_in_use: false,
            is_released: false,
            epoll,
        })
    }

    /// Return the file descriptor that is readable when a socket is.
    pub fn fd(&self) -> RawFd {
        self.epoll.0.as_raw_fd()
    }

    /// Return the milliseconds until the next probe, rounded up.
    pub fn timeout(&self, now: Instant) -> Option<u128> {
        let at = self.flow.next_probe()?;
        let is_over = self.flow.is_unreachable(now);
        (!is_over).then(|| at.saturating_duration_since(now).as_micros().div_ceil(1000))
    }

    /// Return the state of the direct path.
    pub fn direct_state(&self, now: Instant) -> DirectState {
        if self.is_direct_in_use {
            DirectState::InUse
        } else if self.flow.is_reachable() {
            DirectState::Reachable
        } else if self.flow.is_unreachable(now) {
            DirectState::Unreachable
        } else if self.flow.server().is_some() {
            DirectState::Probing
        } else {
            DirectState::Resolving
        }
    }

    /// Return the server's real address, once it is known.
    pub const fn server(&self) -> Option<SocketAddr> {
        self.flow.server()
    }

    /// Return the local address of a path, and the placeholder for the server's address.
    ///
    /// # Errors
    /// [`Failure::Invalid`] if the direct path is not reachable.
    pub fn addresses(&self, path: Path) -> Result<(SocketAddr, SocketAddr), Failure> {
        let proxied = self.association.socket.local_addr()?;
        let local = match path {
            Path::Proxied => proxied,
            Path::Direct => self.direct_socket()?.local_addr()?,
        };
        Ok((local, (placeholder(proxied.is_ipv4()), self.port).into()))
    }

    fn direct_socket(&self) -> Result<&UdpSocket, Failure> {
        let socket = self.direct.as_ref();
        socket
            .filter(|_| self.flow.is_reachable())
            .ok_or(Failure::Invalid)
    }

    /// Send a packet.
    ///
    /// # Errors
    /// Those of `fqs_send()`.
    pub fn send(&self, path: Path, packet: &[u8]) -> Result<(), Failure> {
        let sent = match path {
            Path::Direct => self.direct_socket()?.send(packet),
            // Without a packet, the datagram would release the flow.
            Path::Proxied if self.is_released || packet.is_empty() => return Err(Failure::Invalid),
            Path::Proxied => {
                self.check_proxy()?;
                let wire = [self.flow.header(), packet].concat();
                self.association.socket.send(&wire)
            }
        };
        match sent {
            Err(error) if !is_lost(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Return the error of the proxied path, if it has ended.
    fn check_proxy(&self) -> Result<(), Failure> {
        if self.is_released || self.is_direct_in_use {
            return Ok(());
        }
        if let Some(reply) = self.flow.rejected() {
            return Err(reply.into());
        }
        if self.association.is_closed() {
            return Err(Failure::ProxyClosed);
        }
        Ok(())
    }

    /// Receive the next packet into `buffer`. Return its length and path.
    ///
    /// # Errors
    /// Those of `fqs_receive()`.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Result<(usize, Path), Failure> {
        let received = udp::with_buffer(|datagram| {
            self.next(Path::Proxied, datagram, buffer)
                .or_else(|| self.next(Path::Direct, datagram, buffer))
        });
        self.send_probe()?;
        if let Some(received) = received {
            return Ok(received);
        }
        if self.is_direct_in_use && !self.is_released && self.association.is_closed() {
            self.release();
        }
        self.check_proxy()?;
        Err(Failure::Again)
    }

    /// Receive datagrams on a path until one has a packet for the QUIC library. Return None if none is waiting.
    fn next(
        &mut self,
        path: Path,
        datagram: &mut [u8],
        buffer: &mut [u8],
    ) -> Option<(usize, Path)> {
        loop {
            let (socket, from) = match path {
                Path::Proxied if self.is_released => return None,
                Path::Proxied => (&self.association.socket, self.flow.relay()),
                Path::Direct => (self.direct.as_ref()?, self.flow.server()?),
            };
            let length = match socket.recv(datagram) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                // An ICMP error concerns one datagram only.
                Err(_) => continue,
            };
            let packet = match self.flow.receive(from, &datagram[..length]) {
                Received::Nothing => continue,
                Received::Proxied(packet) => packet,
                Received::Direct(packet) => {
                    self.is_direct_in_use = true;
                    packet
                }
            };
            if let Some(room) = buffer.get_mut(..packet.len()) {
                room.copy_from_slice(packet);
                return Some((packet.len(), path));
            }
        }
    }

    /// Send a probe if one is due. If the system cannot send it, it counts as lost.
    fn send_probe(&mut self) -> Result<(), Failure> {
        let Some((server, probe)) = self.flow.probe(Instant::now()) else {
            return Ok(());
        };
        if self.direct.is_none() {
            let Ok(socket) = udp::connect_std(server) else {
                return Ok(());
            };
            let readable = EpollEvent::new(EpollFlags::EPOLLIN, 0);
            self.epoll.add(&socket, readable).map_err(io::Error::from)?;
            self.direct = Some(socket);
        }
        if let Some(direct) = &self.direct {
            let _ = direct.send(&probe);
        }
        Ok(())
    }

    /// Release the proxy's flow, and free the association for the next connection.
    pub fn release(&mut self) {
        if std::mem::replace(&mut self.is_released, true) {
            return;
        }
        // If this release is lost, the flow ends by its idle timeout.
        let _ = self.association.socket.send(self.flow.header());
        let _ = self.epoll.delete(&self.association.socket);
        let _ = self.epoll.delete(self.association.control());
        self.association.free();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.release();
    }
}

/// Return true if a failure to send is a loss of this packet only: it exceeds the MTU, or answers an earlier packet (ICMP).
fn is_lost(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMSGSIZE | libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH)
    )
}
