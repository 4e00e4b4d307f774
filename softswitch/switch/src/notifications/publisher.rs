// SPDX-License-Identifier: Apache-2.0
//! The publishing side of nanomsg's "publish/subscribe" over TCP and Unix sockets.
//!
//! After connecting, both sides send a header with the number of their protocol (SP over TCP, `sp-tcp-mapping-01`; SP over
//! IPC is the same with another framing). Then the publisher sends messages, each after its length. Subscribers select
//! messages by themselves, so they send nothing.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinHandle;

use crate::address::{NanomsgAddress, remove_stale};

/// Largest number of subscribers; further ones are closed.
const MAX_SUBSCRIBERS: usize = 64;

/// Messages that wait for a slow subscriber; then it loses the oldest ones.
const BACKLOG: usize = 1024;

/// Time within which a subscriber must send its header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Time to wait after a failed accept, such as one without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The header of a publisher: protocol 32.
const PUBLISHER_HEADER: [u8; 8] = [0, b'S', b'P', 0, 0, 32, 0, 0];

/// The header of a subscriber: protocol 33.
const SUBSCRIBER_HEADER: [u8; 8] = [0, b'S', b'P', 0, 0, 33, 0, 0];

/// The first byte of a message over a Unix socket.
const IPC_MESSAGE: u8 = 1;

/// The error for a socket that another switch uses.
const IN_USE: &str =
    "another switch uses this socket: choose another --notifications-addr or --device-id";

type Payload = Arc<[u8]>;

/// A bound publisher.
#[derive(Debug)]
pub struct Publisher {
    address: NanomsgAddress,
    messages: broadcast::Sender<Payload>,
    accepting: JoinHandle<()>,
}

impl Publisher {
    /// Binds the address and accepts subscribers.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub async fn bind(address: NanomsgAddress) -> io::Result<Self> {
        let (messages, _) = broadcast::channel(BACKLOG);
        let subscribers = Subscribers {
            messages: messages.clone(),
            free: Arc::new(Semaphore::new(MAX_SUBSCRIBERS)),
        };
        let (address, accepting) = match address {
            NanomsgAddress::Tcp(host) => {
                let listener = TcpListener::bind(host).await?;
                let bound = listener.local_addr()?.to_string();
                let task = tokio::spawn(accept_tcp(listener, subscribers));
                (NanomsgAddress::Tcp(bound), task)
            }
            NanomsgAddress::Ipc(path) => {
                remove_stale(&path)
                    .await
                    .map_err(|error| match error.kind() {
                        io::ErrorKind::AddrInUse => io::Error::new(error.kind(), IN_USE),
                        _ => error,
                    })?;
                let listener = UnixListener::bind(&path)?;
                let task = tokio::spawn(accept_ipc(listener, subscribers));
                (NanomsgAddress::Ipc(path), task)
            }
        };
        Ok(Self {
            address,
            messages,
            accepting,
        })
    }

    /// Returns the address, with the actual port.
    pub fn address(&self) -> &NanomsgAddress {
        &self.address
    }

    /// Sends a message to all subscribers.
    pub fn send(&self, message: Vec<u8>) {
        // Without subscribers the message is lost, as with nanomsg.
        let _ = self.messages.send(message.into());
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.accepting.abort();
        if let NanomsgAddress::Ipc(path) = &self.address {
            // Another switch may have replaced the file.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// How messages are framed.
#[derive(Debug, Clone, Copy)]
enum Framing {
    Tcp,
    Ipc,
}

/// The state that subscribers share.
#[derive(Debug, Clone)]
struct Subscribers {
    messages: broadcast::Sender<Payload>,
    free: Arc<Semaphore>,
}

impl Subscribers {
    /// Serves a connection, unless there are too many.
    fn add(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, framing: Framing) {
        let Ok(permit) = self.free.clone().try_acquire_owned() else {
            return;
        };
        let messages = self.messages.subscribe();
        tokio::spawn(async move {
            // The switch does not react to the end of a subscriber.
            let _ = serve(stream, messages, framing).await;
            drop(permit);
        });
    }
}

async fn accept_tcp(listener: TcpListener, subscribers: Subscribers) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => subscribers.add(stream, Framing::Tcp),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn accept_ipc(listener: UnixListener, subscribers: Subscribers) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => subscribers.add(stream, Framing::Ipc),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Sends messages to a subscriber until its connection, or the publisher, ends.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    mut messages: broadcast::Receiver<Payload>,
    framing: Framing,
) -> io::Result<()> {
    let (mut from, mut to) = tokio::io::split(stream);
    to.write_all(&PUBLISHER_HEADER).await?;
    let mut header = [0; SUBSCRIBER_HEADER.len()];
    tokio::time::timeout(HEADER_TIMEOUT, from.read_exact(&mut header)).await??;
    if header != SUBSCRIBER_HEADER {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut unexpected = [0];
    loop {
        tokio::select! {
            message = messages.recv() => match message {
                Ok(message) => to.write_all(&frame(&message, framing)).await?,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            },
            // The end of the connection; subscribers send nothing.
            _ = from.read(&mut unexpected) => return Ok(()),
        }
    }
}

fn frame(message: &[u8], framing: Framing) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(9 + message.len());
    if let Framing::Ipc = framing {
        bytes.push(IPC_MESSAGE);
    }
    bytes.extend((message.len() as u64).to_be_bytes());
    bytes.extend(message);
    bytes
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixStream;

    use super::*;

    const WAIT: Duration = Duration::from_secs(20);

    /// Reads exactly `n` bytes in time.
    async fn read(stream: &mut (impl AsyncRead + Unpin), n: usize) -> Vec<u8> {
        let mut bytes = vec![0; n];
        let read = tokio::time::timeout(WAIT, stream.read_exact(&mut bytes)).await;
        read.expect("no bytes in time").unwrap();
        bytes
    }

    /// Sends the header and waits until the subscription is in force.
    async fn subscribe(publisher: &Publisher, stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
        stream.write_all(&SUBSCRIBER_HEADER).await.unwrap();
        assert_eq!(read(stream, 8).await, PUBLISHER_HEADER);
        assert!(publisher.messages.receiver_count() > 0);
    }

    #[tokio::test]
    async fn subscribers_receive_messages_over_tcp() {
        let publisher = Publisher::bind("tcp://127.0.0.1:0".parse().unwrap())
            .await
            .unwrap();
        let NanomsgAddress::Tcp(address) = publisher.address() else {
            panic!("{}", publisher.address())
        };
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        subscribe(&publisher, &mut stream).await;
        publisher.send(b"abc".to_vec());
        assert_eq!(read(&mut stream, 11).await, b"\0\0\0\0\0\0\0\x03abc");
    }

    #[tokio::test]
    async fn stale_socket_is_replaced_and_used_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let address = NanomsgAddress::Ipc(path.clone());
        let publisher = Publisher::bind(address.clone()).await.unwrap();
        let error = Publisher::bind(address).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let mut stream = UnixStream::connect(&path).await.unwrap();
        subscribe(&publisher, &mut stream).await;
        publisher.send(b"abc".to_vec());
        assert_eq!(read(&mut stream, 12).await, b"\x01\0\0\0\0\0\0\0\x03abc");
        drop(publisher);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn other_protocols_are_disconnected() {
        let publisher = Publisher::bind("tcp://127.0.0.1:0".parse().unwrap())
            .await
            .unwrap();
        let NanomsgAddress::Tcp(address) = publisher.address() else {
            panic!("{}", publisher.address())
        };
        for header in [*b"GET / HT", PUBLISHER_HEADER] {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            stream.write_all(&header).await.unwrap();
            assert_eq!(read(&mut stream, 8).await, PUBLISHER_HEADER);
            let end = tokio::time::timeout(WAIT, stream.read(&mut [0]))
                .await
                .unwrap();
            assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
        }
    }
}
