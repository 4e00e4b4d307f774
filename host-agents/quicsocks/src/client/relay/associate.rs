//! How a client comes by an association.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::Error;
use crate::socks::{
    self, AUTH_VERSION, Destination, NO_AUTH, PASSWORD, Reply, UDP_ASSOCIATE, VERSION,
};

/// User name and password at the proxy (RFC 1929).
#[derive(Clone)]
pub struct Credentials {
    pub name: String,
    pub password: String,
}

/// The control connection, and where datagrams are to go.
pub(super) async fn associate(
    proxy: &str,
    credentials: Option<&Credentials>,
) -> Result<(TcpStream, SocketAddr), Error> {
    let mut control = TcpStream::connect(proxy).await?;
    control.set_nodelay(true)?;
    let method = if credentials.is_some() {
        PASSWORD
    } else {
        NO_AUTH
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
    // A NAT may change the client's address and port, so it does not say them.
    let unspecified = match control.local_addr()? {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    Destination::Address((unspecified, 0).into()).put(&mut wire);
    control.write_all(&wire).await?;
    if [control.read_u8().await?, control.read_u8().await?] != [VERSION, method] {
        return Err(Error::Refused(Reply::NotAllowed));
    }
    if credentials.is_some() && [control.read_u8().await?, control.read_u8().await?] != [1, 0] {
        return Err(Error::Refused(Reply::NotAllowed));
    }
    let mut head = [0; 3];
    control.read_exact(&mut head).await?;
    let bound = socks::read_destination(&mut control).await?;
    match (Reply::of(head[1]), bound) {
        (Reply::Succeeded, Ok(Destination::Address(bound))) => {
            let mut bound = bound;
            if bound.ip().is_unspecified() {
                bound.set_ip(control.peer_addr()?.ip());
            }
            Ok((control, bound))
        }
        (Reply::Succeeded, _) => Err(Error::Refused(Reply::Failure)),
        (refused, _) => Err(Error::Refused(refused)),
    }
}
