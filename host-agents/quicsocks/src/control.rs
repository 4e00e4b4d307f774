// SPDX-License-Identifier: Apache-2.0
//! The control connection: authentication, the request, and the association that lives as long as the connection (RFC 1928,
//! RFC 1929).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use frontage_quicsocks_client::socks::{
    self, AUTH_VERSION, Malformed, NO_ACCEPTABLE_METHOD, NO_AUTHENTICATION, Reply, UDP_ASSOCIATE,
    USERNAME_PASSWORD, VERSION,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::association::Association;
use crate::client_port::ClientPort;
use crate::config::User;
use crate::outcome::Control;
use crate::shared::Shared;

/// Time limit for a client's request, and for it to close the connection after a failed one.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves a control connection until it closes.
pub async fn serve(shared: Arc<Shared>, mut stream: TcpStream) {
    let associated = timeout(CLIENT_TIMEOUT, associate(&shared, &mut stream)).await;
    let outcome = match associated {
        Ok(Ok(association)) => {
            shared.metrics.control.add(Control::Associated);
            tokio::select! {
                () = association.run() => {}
                () = closed(&mut stream) => {}
            }
            return;
        }
        Ok(Err(outcome)) => outcome,
        Err(_) => Control::Disconnected,
    };
    shared.metrics.control.add(outcome);
    // Read until the client closes: closing with unread data would send a reset, which can destroy the reply.
    let _ = stream.shutdown().await;
    let _ = timeout(CLIENT_TIMEOUT, closed(&mut stream)).await;
}

/// Discards what the client sends until it closes the connection.
async fn closed(stream: &mut TcpStream) {
    let mut rest = [0; 64];
    while matches!(stream.read(&mut rest).await, Ok(1..)) {}
}

async fn associate(shared: &Arc<Shared>, stream: &mut TcpStream) -> Result<Association, Control> {
    let disconnected = |_: io::Error| Control::Disconnected;
    stream.set_nodelay(true).map_err(disconnected)?;
    if stream.read_u8().await.map_err(disconnected)? != VERSION {
        return Err(Control::Version);
    }
    let mut methods = vec![0; stream.read_u8().await.map_err(disconnected)?.into()];
    stream
        .read_exact(&mut methods)
        .await
        .map_err(disconnected)?;
    let method = if shared.users.is_empty() {
        NO_AUTHENTICATION
    } else {
        USERNAME_PASSWORD
    };
    let is_offered = methods.contains(&method);
    let answer = [
        VERSION,
        if is_offered {
            method
        } else {
            NO_ACCEPTABLE_METHOD
        },
    ];
    stream.write_all(&answer).await.map_err(disconnected)?;
    if !is_offered {
        return Err(Control::Method);
    }
    if method == USERNAME_PASSWORD {
        let is_authenticated = authenticate(&shared.users, stream).await?;
        let answer = [AUTH_VERSION, u8::from(!is_authenticated)];
        stream.write_all(&answer).await.map_err(disconnected)?;
        if !is_authenticated {
            return Err(Control::Password);
        }
    }
    let (reply, bound, result) = read_request(shared, stream).await?;
    let wire = socks::encode_reply(reply, bound);
    stream.write_all(&wire).await.map_err(disconnected)?;
    result
}

/// Reads the request. Returns the reply code and bound address to send, and the association or the outcome to count.
async fn read_request(
    shared: &Arc<Shared>,
    stream: &mut TcpStream,
) -> Result<(Reply, SocketAddr, Result<Association, Control>), Control> {
    let disconnected = |_: io::Error| Control::Disconnected;
    let (local, peer) = (
        stream.local_addr().map_err(disconnected)?,
        stream.peer_addr().map_err(disconnected)?,
    );
    let reject = |reply, outcome| Ok((reply, local, Err(outcome)));
    let mut head = [0; 3];
    stream.read_exact(&mut head).await.map_err(disconnected)?;
    let [version, command, reserved] = head;
    if version != VERSION {
        return Err(Control::Version);
    }
    // The request names the client's source for datagrams. It is ignored, because a NAT may change it.
    let address = socks::read_destination(stream)
        .await
        .map_err(disconnected)?;
    if command != UDP_ASSOCIATE {
        return reject(Reply::Command, Control::Command);
    }
    match address {
        _ if reserved != 0 => return reject(Reply::Failure, Control::Malformed),
        Err(Malformed::AddressType) => return reject(Reply::AddressType, Control::Malformed),
        Err(_) => return reject(Reply::Failure, Control::Malformed),
        Ok(_) => {}
    }
    let Some(permit) = shared.quotas.acquire(peer.ip().to_canonical()) else {
        return reject(Reply::NotAllowed, Control::AssociationLimit);
    };
    let port = ClientPort::open(shared.clone(), peer.ip(), local.ip(), permit);
    match port.and_then(|port| Ok((port.local_addr()?, port))) {
        Ok((bound, port)) => Ok((Reply::Succeeded, bound, Ok(Association::new(port)))),
        Err(_) => reject(Reply::Failure, Control::Failed),
    }
}

/// Reads a user name and password (RFC 1929); returns true if they are correct.
async fn authenticate(users: &[User], stream: &mut TcpStream) -> Result<bool, Control> {
    let disconnected = |_: io::Error| Control::Disconnected;
    if stream.read_u8().await.map_err(disconnected)? != AUTH_VERSION {
        return Err(Control::Malformed);
    }
    let mut credentials = [Vec::new(), Vec::new()];
    for text in &mut credentials {
        text.resize(stream.read_u8().await.map_err(disconnected)?.into(), 0);
        stream.read_exact(text).await.map_err(disconnected)?;
    }
    let [name, password] = credentials;
    // Compare with every user, in constant time, so that the duration does not reveal how much was correct.
    Ok(users.iter().fold(false, |known, user| {
        known
            | (constant_time_eq(user.name.as_bytes(), &name)
                & constant_time_eq(user.password.as_bytes(), &password))
    }))
}

fn constant_time_eq(one: &[u8], other: &[u8]) -> bool {
    let differing = one
        .iter()
        .zip(other)
        .fold(0, |differing, (a, b)| differing | (a ^ b));
    (one.len() == other.len()) & (differing == 0)
}
