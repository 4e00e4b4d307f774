// SPDX-License-Identifier: Apache-2.0
//! A NAT between a client and its server that can change its outside address and port.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// A NAT for one client, which runs until it is dropped.
#[derive(Debug)]
pub struct Nat {
    /// The inside address, to which the client sends instead of the server's.
    pub address: SocketAddr,
    outside: watch::Sender<Arc<UdpSocket>>,
    task: AbortHandle,
}

impl Nat {
    /// Start a NAT in front of `server` with the local address `outside`. Must be called within a Tokio runtime.
    pub async fn new(server: SocketAddr, outside: IpAddr) -> Self {
        let inside = bind(Ipv4Addr::LOCALHOST.into()).await;
        let address = inside.local_addr().expect("the socket is bound");
        let (outside, now) = watch::channel(Arc::new(bind(outside).await));
        let task = tokio::spawn(run(inside, now, server)).abort_handle();
        Self {
            address,
            outside,
            task,
        }
    }

    /// Send from the local address `outside` and a new port, and close the previous port.
    pub async fn rebind(&self, outside: IpAddr) {
        self.outside.send_replace(Arc::new(bind(outside).await));
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn bind(address: IpAddr) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).await;
    socket.expect("a local address")
}

async fn run(inside: UdpSocket, mut outside: watch::Receiver<Arc<UdpSocket>>, server: SocketAddr) {
    let mut client = None;
    let (mut up, mut down) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let now = outside.borrow_and_update().clone();
        // A datagram that cannot be sent is lost, as in any network.
        tokio::select! {
            Ok((length, from)) = inside.recv_from(&mut up) => {
                client = Some(from);
                let _ = now.send_to(&up[..length], server).await;
            }
            Ok((length, _)) = now.recv_from(&mut down) => if let Some(client) = client {
                let _ = inside.send_to(&down[..length], client).await;
            },
            changed = outside.changed() => if changed.is_err() {
                return;
            },
        }
    }
}
