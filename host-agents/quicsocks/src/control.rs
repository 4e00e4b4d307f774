//! The control connection: authentication, the request, and the association that lives as long as it (RFC 1928, RFC 1929).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::association::Association;
use crate::config::User;
use crate::outcome::Control;
use crate::proxy::Shared;
use crate::socks::{
    self, AUTH_VERSION, Malformed, NO_AUTH, NO_METHOD, PASSWORD, Reply, UDP_ASSOCIATE, VERSION,
};

/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves a control connection to its end.
pub async fn serve(shared: Arc<Shared>, mut stream: TcpStream) {
    let associated = timeout(PATIENCE, associate(&shared, &mut stream)).await;
    let outcome = match associated {
        Ok(Ok(association)) => {
            shared.metrics.control.add(Control::Associated);
            tokio::select! {
                () = association.run() => {}
                () = closed(&mut stream) => {}
            }
            return;
        }
        Ok(Err(refused)) => refused,
        Err(_) => Control::Gone,
    };
    shared.metrics.control.add(outcome);
    // A reset would cut off what was replied: read what the client still says, until it closes.
    let _ = stream.shutdown().await;
    let _ = timeout(PATIENCE, closed(&mut stream)).await;
}

/// Waits for the end of the connection; nothing more is to come on it.
async fn closed(stream: &mut TcpStream) {
    let mut rest = [0; 64];
    while matches!(stream.read(&mut rest).await, Ok(1..)) {}
}

async fn associate(
    shared: &Arc<Shared>,
    stream: &mut TcpStream,
) -> Result<Arc<Association>, Control> {
    let gone = |_: io::Error| Control::Gone;
    stream.set_nodelay(true).map_err(gone)?;
    if stream.read_u8().await.map_err(gone)? != VERSION {
        return Err(Control::Version);
    }
    let mut methods = vec![0; stream.read_u8().await.map_err(gone)?.into()];
    stream.read_exact(&mut methods).await.map_err(gone)?;
    let method = if shared.users.is_empty() {
        NO_AUTH
    } else {
        PASSWORD
    };
    let common = methods.contains(&method);
    let answer = [VERSION, if common { method } else { NO_METHOD }];
    stream.write_all(&answer).await.map_err(gone)?;
    if !common {
        return Err(Control::Method);
    }
    if method == PASSWORD {
        let known = authenticate(&shared.users, stream).await?;
        let answer = [AUTH_VERSION, u8::from(!known)];
        stream.write_all(&answer).await.map_err(gone)?;
        if !known {
            return Err(Control::Password);
        }
    }
    let (reply, bound, found) = request(shared, stream).await?;
    let wire = socks::reply(reply, bound);
    stream.write_all(&wire).await.map_err(gone)?;
    found
}

/// What to reply to the request: the code, the address that was bound, and what comes of it.
async fn request(
    shared: &Arc<Shared>,
    stream: &mut TcpStream,
) -> Result<
    (
        Reply,
        std::net::SocketAddr,
        Result<Arc<Association>, Control>,
    ),
    Control,
> {
    let gone = |_: io::Error| Control::Gone;
    let (local, peer) = (
        stream.local_addr().map_err(gone)?,
        stream.peer_addr().map_err(gone)?,
    );
    let refuse = |reply, outcome| Ok((reply, local, Err(outcome)));
    let mut head = [0; 3];
    stream.read_exact(&mut head).await.map_err(gone)?;
    let [version, command, reserved] = head;
    if version != VERSION {
        return Err(Control::Version);
    }
    // From where the client is going to send: it does not know what a NAT makes of that, so it does not count.
    let address = socks::read_destination(stream).await.map_err(gone)?;
    if command != UDP_ASSOCIATE {
        return refuse(Reply::Command, Control::Command);
    }
    match address {
        _ if reserved != 0 => return refuse(Reply::Failure, Control::Malformed),
        Err(Malformed::AddressType) => return refuse(Reply::AddressType, Control::Malformed),
        Err(_) => return refuse(Reply::Failure, Control::Malformed),
        Ok(_) => {}
    }
    let Some(place) = shared.accounts.place(peer.ip().to_canonical()) else {
        return refuse(Reply::NotAllowed, Control::Limit);
    };
    let association = Association::new(shared.clone(), peer.ip(), local.ip(), place);
    match association.and_then(|association| Ok((association.bound()?, association))) {
        Ok((bound, association)) => Ok((Reply::Succeeded, bound, Ok(Arc::new(association)))),
        Err(_) => refuse(Reply::Failure, Control::Failed),
    }
}

/// Whether user name and password (RFC 1929) are right.
async fn authenticate(users: &[User], stream: &mut TcpStream) -> Result<bool, Control> {
    let gone = |_: io::Error| Control::Gone;
    if stream.read_u8().await.map_err(gone)? != AUTH_VERSION {
        return Err(Control::Malformed);
    }
    let mut said = [Vec::new(), Vec::new()];
    for text in &mut said {
        text.resize(stream.read_u8().await.map_err(gone)?.into(), 0);
        stream.read_exact(text).await.map_err(gone)?;
    }
    let [name, password] = said;
    // All of them, whoever it is, in a time that does not tell how much is right.
    Ok(users.iter().fold(false, |known, user| {
        known | (alike(user.name.as_bytes(), &name) & alike(user.password.as_bytes(), &password))
    }))
}

fn alike(one: &[u8], other: &[u8]) -> bool {
    let differing = one
        .iter()
        .zip(other)
        .fold(0, |differing, (a, b)| differing | (a ^ b));
    (one.len() == other.len()) & (differing == 0)
}
