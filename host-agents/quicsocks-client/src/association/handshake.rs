// SPDX-License-Identifier: Apache-2.0
//! The SOCKS handshake on the control connection.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;

use crate::Error;
use crate::socks::{
    self, AUTH_VERSION, Destination, NO_AUTHENTICATION, Reply, UDP_ASSOCIATE, USERNAME_PASSWORD,
    VERSION,
};

/// Time limit for the SOCKS handshake.
const ASSOCIATE_TIMEOUT: Duration = Duration::from_secs(10);

/// User name and password for the proxy (RFC 1929).
#[derive(Clone)]
pub struct Credentials {
    pub name: String,
    pub password: String,
}

/// Connects to `proxy` and requests a UDP association.
///
/// Returns the control connection, and the proxy's address for the client's datagrams.
pub(super) async fn associate(
    proxy: &str,
    credentials: Option<&Credentials>,
    local: Option<IpAddr>,
) -> Result<(TcpStream, SocketAddr), Error> {
    let opened = timeout(ASSOCIATE_TIMEOUT, negotiate(proxy, credentials, local)).await;
    opened.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Does the same for programs without Tokio. The control connection does not block.
///
/// The proxy accepts datagrams from the address of the control connection only. `local` is that address if the program has
/// bound its UDP socket to one.
///
/// # Errors
/// Returns the proxy's reply if it rejects the request, and the socket error if it is unreachable.
pub fn associate_blocking(
    proxy: &str,
    credentials: Option<&Credentials>,
    local: Option<IpAddr>,
) -> Result<(std::net::TcpStream, SocketAddr), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (control, bound) = associate(proxy, credentials, local).await?;
        Ok((control.into_std()?, bound))
    })
}

/// Connects from `local` to the first address of `proxy` that answers.
async fn connect_from(local: IpAddr, proxy: &str) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let has_family = |address: &SocketAddr| address.is_ipv4() == local.is_ipv4();
    for address in lookup_host(proxy).await?.filter(has_family) {
        let socket = if local.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        }?;
        socket.bind((local, 0).into())?;
        match socket.connect(address).await {
            Ok(control) => return Ok(control),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn negotiate(
    proxy: &str,
    credentials: Option<&Credentials>,
    local: Option<IpAddr>,
) -> Result<(TcpStream, SocketAddr), Error> {
    let mut control = match local {
        None => TcpStream::connect(proxy).await?,
        Some(local) => connect_from(local, proxy).await?,
    };
    control.set_nodelay(true)?;
    let method = if credentials.is_some() {
        USERNAME_PASSWORD
    } else {
        NO_AUTHENTICATION
    };
    let mut wire = vec![VERSION, 1, method];
    if let Some(Credentials { name, password }) = credentials {
        wire.push(AUTH_VERSION);
        for text in [name, password] {
            let text = &text.as_bytes()[..text.len().min(255)];
            wire.push(text.len() as u8);
            wire.extend(text);
        }
    }
    wire.extend([VERSION, UDP_ASSOCIATE, 0]);
    // The request leaves the client's address and port unspecified, because a NAT may change both.
    let unspecified = match control.local_addr()? {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    Destination::Address((unspecified, 0).into()).encode(&mut wire);
    control.write_all(&wire).await?;
    if [control.read_u8().await?, control.read_u8().await?] != [VERSION, method] {
        return Err(Error::Rejected(Reply::NotAllowed));
    }
    if credentials.is_some() && [control.read_u8().await?, control.read_u8().await?] != [1, 0] {
        return Err(Error::Rejected(Reply::NotAllowed));
    }
    let mut head = [0; 3];
    control.read_exact(&mut head).await?;
    let bound = socks::read_destination(&mut control).await?;
    match (Reply::from_code(head[1]), bound) {
        (Reply::Succeeded, Ok(Destination::Address(mut bound))) => {
            if bound.ip().is_unspecified() {
                bound.set_ip(control.peer_addr()?.ip());
            }
            Ok((control, bound))
        }
        (Reply::Succeeded, _) => Err(Error::Rejected(Reply::Failure)),
        (reply, _) => Err(Error::Rejected(reply)),
    }
}
