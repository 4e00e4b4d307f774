// SPDX-License-Identifier: Apache-2.0
//! TLS connections: handshakes are concurrent, and each uses the files that are valid when it begins.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use super::Tls;
use super::access::Client;
use super::certificate::Certificate;
use crate::address::Listener;
use crate::grpc_unix::GrpcUnixStream;

/// Maximum duration of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of concurrent handshakes; further connections wait in the kernel.
const MAX_HANDSHAKES: usize = 64;

/// Time to wait after an error of `accept`, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// An accepted connection.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection after its handshake.
pub struct TlsConnection {
    stream: Box<dyn Io>,
    client: Client,
}

/// Returns the connections of a listener, which closes when the stream is dropped.
pub fn accept(listener: Listener, tls: Arc<Tls>) -> ReceiverStream<io::Result<TlsConnection>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        tokio::select! {
            () = sender.closed() => {}
            () = accept_all(&listener, &tls, &sender) => {}
        }
    });
    ReceiverStream::new(receiver)
}

async fn accept_all(
    listener: &Listener,
    tls: &Arc<Tls>,
    sender: &mpsc::Sender<io::Result<TlsConnection>>,
) {
    let handshakes = Arc::new(Semaphore::new(MAX_HANDSHAKES));
    loop {
        let Ok(permit) = Arc::clone(&handshakes).acquire_owned().await else {
            return;
        };
        let (stream, from) = match accept_one(listener).await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (tls, sender) = (Arc::clone(tls), sender.clone());
        tokio::spawn(async move {
            let shaken = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake(stream, tls)).await;
            drop(permit);
            match shaken {
                // It fails if the server has stopped.
                Ok(Ok(connection)) => drop(sender.send(Ok(connection)).await),
                Ok(Err(error)) => tracing::warn!("TLS: refused a client at {from}: {error}"),
                Err(_) => tracing::debug!("TLS: no handshake from {from}"),
            }
        });
    }
}

async fn accept_one(listener: &Listener) -> io::Result<(Stream, String)> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, address) = listener.accept().await?;
            // Without TCP_NODELAY, the rest of a response would wait for the client's delayed acknowledgement.
            stream.set_nodelay(true)?;
            Ok((Stream::Tcp(stream), address.to_string()))
        }
        Listener::Unix(listener) => {
            let (stream, _) = listener.accept().await?;
            Ok((Stream::Unix(stream), "the Unix socket".into()))
        }
    }
}

async fn handshake(stream: Stream, tls: Arc<Tls>) -> io::Result<TlsConnection> {
    let acceptor = TlsAcceptor::from(tls.config());
    match stream {
        Stream::Tcp(stream) => connection(acceptor.accept(stream).await?, tls, |s| Box::new(s)),
        Stream::Unix(stream) => connection(acceptor.accept(stream).await?, tls, |s| {
            Box::new(GrpcUnixStream::new(s))
        }),
    }
}

/// Returns the connection of a client after its handshake. `wrap` prepares the decrypted bytes for HTTP/2.
fn connection<S>(
    stream: TlsStream<S>,
    tls: Arc<Tls>,
    wrap: impl FnOnce(TlsStream<S>) -> Box<dyn Io>,
) -> io::Result<TlsConnection> {
    let chain = stream.get_ref().1.peer_certificates();
    let certificate = chain
        .and_then(<[_]>::first)
        .map(|der| Certificate::parse(der));
    let certificate = certificate.transpose().map_err(io::Error::other)?;
    let client = Client::new(tls, certificate);
    Ok(TlsConnection {
        stream: wrap(stream),
        client,
    })
}

impl AsyncRead for TlsConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, out)
    }
}

impl AsyncWrite for TlsConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Connected for TlsConnection {
    type ConnectInfo = Client;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.client.clone()
    }
}
