// SPDX-License-Identifier: Apache-2.0
//! The handshake of a carrier, in one round trip: Noise NNpsk0 (The Noise Protocol Framework, revision 34).
//!
//! The client begins. Its header names the protocol version, and the session that it resumes. The header is the prologue of
//! the Noise handshake.
//!
//! | | client's payload | server's payload | pre-shared key |
//! |---|---|---|---|
//! | new session | window | session id, session secret, window | the service's key |
//! | resumption | counter, received offset | received offset | the session's secret |
//!
//! The server's message is encrypted with ephemeral keys, so even the owner of the service's key cannot read the session's
//! secret from a recording. The counter of resumptions increases, so the server rejects a repeated one.

use std::io;

use ring::hmac;
use snow::{Builder, HandshakeState, TransportState};
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::key::{SECRET_LEN, Secret};

const NOISE: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
const VERSION: u8 = 1;
/// Bytes of a session id.
pub const ID_LEN: usize = 16;
const HEADER_LEN: usize = 1 + ID_LEN;
/// Bytes that Noise adds to the payload of a handshake message: the ephemeral key and the tag.
const OVERHEAD: usize = 32 + 16;
const NEW_LEN: usize = 4;
const CREATED_LEN: usize = ID_LEN + SECRET_LEN + 4;
const RESUME_LEN: usize = 8 + 8;
const RESUMED_LEN: usize = 8;
const MAC_LEN: usize = 32;
const ACCEPTED: u8 = 0;

/// A session's public name.
pub type Id = [u8; ID_LEN];
/// The id in the header of a handshake for a new session.
const NO_ID: Id = [0; ID_LEN];

/// An authenticated refusal by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[repr(u8)]
pub enum Refusal {
    /// The session has ended, or the server was restarted.
    #[error("the server does not know the session")]
    UnknownSession = 1,
    /// The server has its maximum number of sessions.
    #[error("the server has its maximum number of sessions")]
    Full = 2,
}

/// Why a handshake failed.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The peer does not have the key, or altered a message.
    #[error("authentication failed: check that both ends have the same key")]
    Authentication,
    /// The peer has another version of the protocol.
    #[error("unknown protocol version {0}: this program has {VERSION}")]
    Version(u8),
    /// The server refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The resumption was used before.
    #[error("a repeated resumption")]
    Repeated,
}

impl From<snow::Error> for HandshakeError {
    fn from(_: snow::Error) -> Self {
        Self::Authentication
    }
}

type Result<T> = std::result::Result<T, HandshakeError>;

/// The properties of a new session.
pub struct Created {
    /// The session's name.
    pub id: Id,
    /// The key of its resumptions.
    pub secret: Secret,
    /// Bytes that each end stores per direction.
    pub window: u32,
}

/// Begin a new session as client.
///
/// # Errors
/// [`HandshakeError`].
pub async fn create(
    stream: &mut TcpStream,
    key: &Secret,
    window: u32,
) -> Result<(TransportState, Created)> {
    let client = Client::new(NO_ID, key)?;
    let (transport, payload) = client
        .exchange::<CREATED_LEN>(stream, key, &window.to_be_bytes())
        .await?;
    let (id, rest) = split(&payload);
    let (secret, theirs) = split(rest);
    let (theirs, _) = split(theirs);
    let created = Created {
        id,
        secret: Secret(secret),
        window: window.min(u32::from_be_bytes(theirs)),
    };
    Ok((transport, created))
}

/// Resume a session as client. Return the offset up to which the server has received.
///
/// `counter` must be greater than in all earlier calls for this session.
///
/// # Errors
/// [`HandshakeError`].
pub async fn resume(
    stream: &mut TcpStream,
    key: &Secret,
    (id, secret): (Id, &Secret),
    counter: u64,
    received: u64,
) -> Result<(TransportState, u64)> {
    let payload = [counter.to_be_bytes(), received.to_be_bytes()].concat();
    let client = Client::new(id, secret)?;
    let (transport, answer) = client
        .exchange::<RESUMED_LEN>(stream, key, &payload)
        .await?;
    Ok((transport, u64::from_be_bytes(split(&answer).0)))
}

struct Client {
    header: [u8; HEADER_LEN],
    noise: HandshakeState,
}

impl Client {
    fn new(id: Id, key: &Secret) -> Result<Self> {
        let header = header(id);
        let noise = builder(&header, key)?.build_initiator()?;
        Ok(Self { header, noise })
    }

    /// Send the client's message, and return the server's payload of `N` bytes.
    async fn exchange<const N: usize>(
        mut self,
        stream: &mut TcpStream,
        key: &Secret,
        payload: &[u8],
    ) -> Result<(TransportState, [u8; N])> {
        let mut message = vec![0; OVERHEAD + payload.len()];
        self.noise.write_message(payload, &mut message)?;
        stream
            .write_all(&[&self.header[..], &message].concat())
            .await?;
        let status = stream.read_u8().await?;
        if status != ACCEPTED {
            let mut tag = [0; MAC_LEN];
            stream.read_exact(&mut tag).await?;
            return Err(verify_refusal(key, status, &message, &tag));
        }
        let mut answer = vec![0; OVERHEAD + N];
        stream.read_exact(&mut answer).await?;
        let mut payload = [0; N];
        self.noise.read_message(&answer, &mut payload)?;
        Ok((self.noise.into_transport_mode()?, payload))
    }
}

/// A client's first message, not yet authenticated.
pub enum Request {
    /// The client wants a new session.
    New(NewOpening),
    /// The client resumes the session with this id.
    Resume(Id, ResumeOpening),
}

/// A client's first message for a new session.
pub type NewOpening = Opening<NEW_LEN>;
/// A client's first message to resume a session.
pub type ResumeOpening = Opening<RESUME_LEN>;

/// An encrypted first message with a payload of `N` bytes.
pub struct Opening<const N: usize> {
    header: [u8; HEADER_LEN],
    message: Vec<u8>,
}

/// A client's request for a new session.
pub struct NewRequest {
    noise: HandshakeState,
    window: u32,
}

/// A client's authenticated resumption, which the session answers.
pub struct Resumption {
    noise: HandshakeState,
    /// Offset up to which the client has received.
    pub received: u64,
}

/// Read a client's first message.
///
/// # Errors
/// If the connection fails or the version is unknown.
pub async fn read_request(stream: &mut TcpStream) -> Result<Request> {
    let mut header = [0; HEADER_LEN];
    stream.read_exact(&mut header).await?;
    if header[0] != VERSION {
        return Err(HandshakeError::Version(header[0]));
    }
    let (id, _) = split(&header[1..]);
    Ok(if id == NO_ID {
        Request::New(Opening::read(header, stream).await?)
    } else {
        Request::Resume(id, Opening::read(header, stream).await?)
    })
}

impl<const N: usize> Opening<N> {
    async fn read(header: [u8; HEADER_LEN], stream: &mut TcpStream) -> Result<Self> {
        let mut message = vec![0; OVERHEAD + N];
        stream.read_exact(&mut message).await?;
        Ok(Self { header, message })
    }

    fn open(&self, key: &Secret) -> Result<(HandshakeState, [u8; N])> {
        let mut noise = builder(&self.header, key)?.build_responder()?;
        let mut payload = [0; N];
        noise.read_message(&self.message, &mut payload)?;
        Ok((noise, payload))
    }

    /// Return the message that refuses this request.
    pub fn refusal(&self, key: &Secret, refusal: Refusal) -> Vec<u8> {
        let status = refusal as u8;
        let mut bytes = vec![status];
        bytes.extend(hmac::sign(&refusal_key(key), &refused(status, &self.message)).as_ref());
        bytes
    }
}

impl Opening<NEW_LEN> {
    /// Verify the request with the service's key.
    ///
    /// # Errors
    /// If the client does not have the key.
    pub fn verify(&self, key: &Secret) -> Result<NewRequest> {
        let (noise, window) = self.open(key)?;
        let window = u32::from_be_bytes(window);
        Ok(NewRequest { noise, window })
    }
}

impl NewRequest {
    /// Grant the session. Return the message for the client, and what was granted; its window is at most `window`.
    ///
    /// # Errors
    /// If Noise fails.
    pub fn grant(mut self, id: Id, window: u32) -> Result<(Vec<u8>, TransportState, Created)> {
        let secret = Secret::random();
        let payload = [&id[..], &secret.0, &window.to_be_bytes()].concat();
        let message = accept(&mut self.noise, &payload)?;
        let window = window.min(self.window);
        let created = Created { id, secret, window };
        Ok((message, self.noise.into_transport_mode()?, created))
    }
}

impl Opening<RESUME_LEN> {
    /// Verify the resumption with the session's secret. `last` is the counter of the last one, and becomes this one's.
    ///
    /// # Errors
    /// If the client does not have the secret, or if the resumption is not newer than the last one.
    pub fn verify(&self, secret: &Secret, last: &mut u64) -> Result<Resumption> {
        let (noise, payload) = self.open(secret)?;
        let (counter, received) = split::<8>(&payload);
        let counter = u64::from_be_bytes(counter);
        if counter <= *last {
            return Err(HandshakeError::Repeated);
        }
        *last = counter;
        Ok(Resumption {
            noise,
            received: u64::from_be_bytes(split(received).0),
        })
    }
}

impl Resumption {
    /// Accept the resumption; `received` is the offset up to which the server has received. Return the message for the client.
    ///
    /// # Errors
    /// If Noise fails.
    pub fn accept(mut self, received: u64) -> Result<(Vec<u8>, TransportState)> {
        let message = accept(&mut self.noise, &received.to_be_bytes())?;
        Ok((message, self.noise.into_transport_mode()?))
    }
}

fn header(id: Id) -> [u8; HEADER_LEN] {
    let mut header = [VERSION; HEADER_LEN];
    header[1..].copy_from_slice(&id);
    header
}

fn builder<'a>(header: &'a [u8], key: &'a Secret) -> Result<Builder<'a>> {
    let parameters = NOISE.parse().expect("a valid name");
    Ok(Builder::new(parameters).prologue(header)?.psk(0, &key.0)?)
}

fn accept(noise: &mut HandshakeState, payload: &[u8]) -> Result<Vec<u8>> {
    let mut message = vec![ACCEPTED; 1 + OVERHEAD + payload.len()];
    noise.write_message(payload, &mut message[1..])?;
    Ok(message)
}

/// Return the error for a refusal. An altered one must not end the session, so it counts as failed authentication.
fn verify_refusal(key: &Secret, status: u8, message: &[u8], tag: &[u8]) -> HandshakeError {
    if hmac::verify(&refusal_key(key), &refused(status, message), tag).is_err() {
        return HandshakeError::Authentication;
    }
    match status {
        1 => Refusal::UnknownSession.into(),
        2 => Refusal::Full.into(),
        _ => HandshakeError::Authentication,
    }
}

fn refusal_key(key: &Secret) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &key.0)
}

/// Return what the tag of a refusal covers. The client's message contains a fresh key, so a refusal cannot be used again.
fn refused(status: u8, message: &[u8]) -> Vec<u8> {
    [b"frontage-mobile refusal", &[status][..], message].concat()
}

fn split<const N: usize>(bytes: &[u8]) -> ([u8; N], &[u8]) {
    let (first, rest) = bytes.split_first_chunk().expect("the length is checked");
    (*first, rest)
}

#[cfg(test)]
mod tests;
