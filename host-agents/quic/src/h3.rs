// SPDX-License-Identifier: Apache-2.0
//! The traits of crate `h3` over noq's connections and streams.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming};
use noq::{ConnectionError, VarInt};

mod raw;
mod streams;
mod unused;

pub use raw::RawStreams;
pub use streams::{BidiStream, RecvStream, SendStream, send_data};
pub use unused::UnusedStreams;

type Pending<T> = Option<Pin<Box<dyn Future<Output = Result<T, ConnectionError>> + Send + Sync>>>;
/// The two directions of a bidirectional stream.
pub type StreamPair = (noq::SendStream, noq::RecvStream);
/// Waits for the next bidirectional stream of the peer, and returns it with its id.
type Accept = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Accepted> + Send + Sync>> + Send>;
type Accepted = Result<(u64, StreamPair), ConnectionError>;

/// A server's or client's connection for crate `h3`.
pub struct Connection {
    opener: Opener,
    accept: Accept,
    accept_bi: Pending<(u64, StreamPair)>,
    accept_uni: Pending<noq::RecvStream>,
    raw: RawStreams,
    unused: UnusedStreams,
}

impl Connection {
    /// Wrap `inner`, which stays usable for everything except streams.
    pub fn new(inner: noq::Connection) -> Self {
        let acceptor = inner.clone();
        let accept = move || {
            let inner = acceptor.clone();
            async move {
                let both = inner.accept_bi().await?;
                Ok((both.0.id().into(), both))
            }
        };
        Self::over(Opener::new(inner, true), accept)
    }

    /// Wrap a server's connection of which this host has only some request streams. `accept` yields them with their
    /// ids in the client's connection. The control streams (RFC 9114, section 6.2) are on another host: this host
    /// discards what h3 writes to one, and never receives one.
    pub fn with_streams<F>(inner: noq::Connection, accept: impl Fn() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Accepted> + Send + Sync + 'static,
    {
        Self::over(Opener::new(inner, false), accept)
    }

    fn over<F>(opener: Opener, accept: impl Fn() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Accepted> + Send + Sync + 'static,
    {
        Self {
            opener,
            accept: Box::new(move || Box::pin(accept())),
            accept_bi: None,
            accept_uni: None,
            raw: RawStreams::default(),
            unused: UnusedStreams::default(),
        }
    }

    /// Return the streams that the peer opened and on which h3's data is written without frames.
    pub fn raw_streams(&self) -> RawStreams {
        self.raw.clone()
    }

    /// Return the streams that the peer opened and on which h3 has sent nothing.
    pub fn unused_streams(&self) -> UnusedStreams {
        self.unused.clone()
    }
}

/// Poll the future in `pending`, or one that `start` creates if `pending` is empty.
fn drive<T, F>(
    pending: &mut Pending<T>,
    cx: &mut Context<'_>,
    start: impl FnOnce() -> F,
) -> Poll<Result<T, ConnectionError>>
where
    F: Future<Output = Result<T, ConnectionError>> + Send + Sync + 'static,
{
    let future = pending.get_or_insert_with(|| Box::pin(start()));
    let result = ready!(future.as_mut().poll(cx));
    *pending = None;
    Poll::Ready(result)
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let inner = &self.opener.inner;
        if !self.opener.has_uni {
            let closed = drive(&mut self.accept_uni, cx, || {
                let inner = inner.clone();
                async move { Err(inner.closed().await) }
            });
            return closed.map_ok(RecvStream::new).map_err(connection_error);
        }
        let accepted = drive(&mut self.accept_uni, cx, || {
            let inner = inner.clone();
            async move { inner.accept_uni().await }
        });
        accepted.map_ok(RecvStream::new).map_err(connection_error)
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, ConnectionErrorIncoming>> {
        let accepted = drive(&mut self.accept_bi, cx, &self.accept);
        let accepted = accepted.map_ok(|(id, both)| {
            BidiStream::accepted(both, id, self.unused.clone(), self.raw.clone())
        });
        accepted.map_err(connection_error)
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<B>::close(&mut self.opener, code, reason);
    }
}

/// Opens the streams of a connection.
pub struct Opener {
    inner: noq::Connection,
    /// True if this host has unidirectional streams.
    has_uni: bool,
    open_bi: Pending<StreamPair>,
    open_uni: Pending<noq::SendStream>,
}

impl Opener {
    fn new(inner: noq::Connection, has_uni: bool) -> Self {
        Self {
            inner,
            has_uni,
            open_bi: None,
            open_uni: None,
        }
    }
}

impl Clone for Opener {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.has_uni)
    }
}

impl<B: Buf> quic::OpenStreams<B> for Opener {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        let opened = drive(&mut self.open_bi, cx, || {
            let inner = self.inner.clone();
            async move { inner.open_bi().await }
        });
        let opened = opened.map_ok(|both| {
            let id = both.0.id().into();
            BidiStream::new(both, id)
        });
        opened.map_err(lost)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        if !self.has_uni {
            return Poll::Ready(Ok(SendStream::discarding()));
        }
        let opened = drive(&mut self.open_uni, cx, || {
            let inner = self.inner.clone();
            async move { inner.open_uni().await }
        });
        let opened = opened.map_ok(|stream| {
            let id = stream.id().into();
            SendStream::new(stream, id)
        });
        opened.map_err(lost)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.inner.close(varint(code.value()), reason);
    }
}

fn varint(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => ConnectionErrorIncoming::ApplicationClose {
            error_code: close.error_code.into(),
        },
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

fn lost(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: connection_error(error),
    }
}
