// SPDX-License-Identifier: Apache-2.0
//! The proxy's UDP port for one client: the client's end of all its flows.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use frontage_quicsocks_client::udp;
use tokio::net::UdpSocket;

use crate::quota::{Permit, TokenBucket};
use crate::shared::Shared;

/// The UDP port of an association.
#[derive(Debug)]
pub struct ClientPort {
    pub shared: Arc<Shared>,
    /// Address of the control connection's client. Datagrams from other addresses are dropped.
    pub address: IpAddr,
    socket: UdpSocket,
    /// The client's address and port. The first datagram shows the port, because a NAT may have chosen it.
    source: OnceLock<SocketAddr>,
    permit: Permit,
}

impl ClientPort {
    /// Opens a port for `client` at the proxy's address `local`.
    ///
    /// # Errors
    /// Returns the system's error if the port cannot be opened.
    pub fn open(
        shared: Arc<Shared>,
        client: IpAddr,
        local: IpAddr,
        permit: Permit,
    ) -> io::Result<Self> {
        Ok(Self {
            shared,
            address: client.to_canonical(),
            socket: udp::bind((local.to_canonical(), 0).into())?,
            source: OnceLock::new(),
            permit,
        })
    }

    /// Returns the proxy's address for the client's datagrams.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the client's bandwidth limit.
    pub fn bandwidth(&self) -> &Arc<TokenBucket> {
        self.permit.bandwidth()
    }

    /// Returns the unspecified address of the client's family.
    pub fn unspecified(&self) -> SocketAddr {
        match self.address {
            IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        }
    }

    /// Returns true if `from` may be the association's client.
    pub fn accepts(&self, from: SocketAddr) -> bool {
        from.ip().to_canonical() == self.address
            && self.source.get().is_none_or(|known| *known == from)
    }

    /// Binds the association to the client's address and port if it is not bound yet.
    pub fn bind_source(&self, from: SocketAddr) {
        self.source.get_or_init(|| from);
    }

    /// Sends `wire` to the client; returns true if the kernel accepted it.
    pub fn send(&self, wire: &[u8]) -> bool {
        self.source
            .get()
            .is_some_and(|client| udp::send_to(&self.socket, wire, *client).is_ok())
    }

    /// Waits until a datagram may be received.
    ///
    /// # Errors
    /// Returns the system's error.
    pub async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Receives a datagram without waiting.
    ///
    /// # Errors
    /// Returns `WouldBlock` if no datagram is waiting, or an ICMP error, which concerns one datagram only.
    pub fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.socket.try_recv_from(buffer)
    }
}
