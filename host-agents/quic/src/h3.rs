//! The traits of crate `h3` over noq's connections and streams.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use noq::{ConnectionError, ReadError, VarInt, WriteError};

type Pending<T> = Option<Pin<Box<dyn Future<Output = Result<T, ConnectionError>> + Send + Sync>>>;
type Both = (noq::SendStream, noq::RecvStream);

/// Most bytes taken from a stream at once.
const CHUNK: usize = 1 << 16;
/// Chunks looked through for a stream's end that nobody read.
const LEFTOVERS: usize = 4;

/// A connection, of a server or a client.
pub struct Connection {
    opener: Opener,
    accept_bi: Pending<Both>,
    accept_uni: Pending<noq::RecvStream>,
}

impl Connection {
    /// Wraps `inner`, which stays usable for all but its streams.
    pub fn new(inner: noq::Connection) -> Self {
        Self {
            opener: Opener::new(inner),
            accept_bi: None,
            accept_uni: None,
        }
    }
}

/// Polls the future in `pending`, which `start` makes if there is none.
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
        let inner = &self.opener.inner;
        let accepted = drive(&mut self.accept_bi, cx, || {
            let inner = inner.clone();
            async move { inner.accept_bi().await }
        });
        let accepted = accepted.map_ok(|both| BidiStream::new(both, true));
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

/// Opens streams of a connection.
pub struct Opener {
    inner: noq::Connection,
    open_bi: Pending<Both>,
    open_uni: Pending<noq::SendStream>,
}

impl Opener {
    fn new(inner: noq::Connection) -> Self {
        Self {
            inner,
            open_bi: None,
            open_uni: None,
        }
    }
}

impl Clone for Opener {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone())
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
        let opened = opened.map_ok(|both| BidiStream::new(both, false));
        opened.map_err(lost)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        let opened = drive(&mut self.open_uni, cx, || {
            let inner = self.inner.clone();
            async move { inner.open_uni().await }
        });
        let opened = opened.map_ok(|stream| SendStream::new(stream, false));
        opened.map_err(lost)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.inner.close(varint(code.value()), reason);
    }
}

/// A stream of both directions.
pub struct BidiStream<B> {
    send: SendStream<B>,
    recv: RecvStream,
}

impl<B> BidiStream<B> {
    fn new((send, recv): Both, answers: bool) -> Self {
        Self {
            send: SendStream::new(send, answers),
            recv: RecvStream::new(recv),
        }
    }
}

impl<B: Buf> quic::BidiStream<B> for BidiStream<B> {
    type SendStream = SendStream<B>;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream<B>, RecvStream) {
        (self.send, self.recv)
    }
}

impl<B: Buf> quic::SendStream<B> for BidiStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl<B> quic::RecvStream for BidiStream<B> {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.recv.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.recv.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.recv.recv_id()
    }
}

/// The direction from here to the peer. Of a stream that the peer opened, `poll_finish` is ready only once the peer has acknowledged everything,
/// so that a server knows when a response needs it no more.
pub struct SendStream<B> {
    inner: noq::SendStream,
    /// What h3 handed over and noq has not taken yet.
    data: Option<WriteBuf<B>>,
    /// Whether the peer opened it.
    answers: bool,
    /// Its end was written; ready once everything is acknowledged.
    ending: Option<Pin<Box<noq::Stopped>>>,
}

impl<B> SendStream<B> {
    fn new(inner: noq::SendStream, answers: bool) -> Self {
        Self {
            inner,
            data: None,
            answers,
            ending: None,
        }
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(data) = self.data.as_mut().filter(|data| data.has_remaining()) {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, data.chunk()))
                .map_err(write_error)?;
            data.advance(written);
        }
        self.data = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.data.is_some() {
            let connection_error =
                ConnectionErrorIncoming::InternalError("data before the stream was ready".into());
            return Err(StreamErrorIncoming::ConnectionErrorIncoming { connection_error });
        }
        self.data = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        let ending = match &mut self.ending {
            Some(ending) => ending,
            none => {
                let closed =
                    |closed: noq::ClosedStream| StreamErrorIncoming::Unknown(closed.into());
                self.inner.finish().map_err(closed)?;
                if !self.answers {
                    return Poll::Ready(Ok(()));
                }
                none.insert(Box::pin(self.inner.stopped()))
            }
        };
        match ready!(ending.as_mut().poll(cx)) {
            Ok(None) => Poll::Ready(Ok(())),
            Ok(Some(code)) => Poll::Ready(Err(write_error(WriteError::Stopped(code)))),
            Err(error) => Poll::Ready(Err(write_error(error.into()))),
        }
    }

    fn reset(&mut self, reset_code: u64) {
        // A stream that is closed already needs no reset.
        let _ = self.inner.reset(varint(reset_code));
    }

    fn send_id(&self) -> StreamId {
        id(self.inner.id())
    }
}

/// The direction from the peer to here.
pub struct RecvStream(noq::RecvStream);

impl RecvStream {
    const fn new(inner: noq::RecvStream) -> Self {
        Self(inner)
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        // Nothing is lost if the future is dropped: it takes a chunk only as it becomes ready.
        let chunk = ready!(pin!(self.0.read_chunk(CHUNK)).poll(cx));
        Poll::Ready(chunk.map_err(read_error))
    }

    fn stop_sending(&mut self, error_code: u64) {
        // A stream that is read to its end needs no stopping.
        let _ = self.0.stop(varint(error_code));
    }

    fn recv_id(&self) -> StreamId {
        id(self.0.id())
    }
}

impl Drop for RecvStream {
    /// What nobody wants to read is given up without blame (RFC 9114, section 4.1), unless it is all here already.
    fn drop(&mut self) {
        let mut nobody = Context::from_waker(Waker::noop());
        for _ in 0..LEFTOVERS {
            match pin!(self.0.read_chunk(CHUNK)).poll(&mut nobody) {
                Poll::Ready(Ok(Some(_))) => {}
                Poll::Ready(_) => return,
                Poll::Pending => break,
            }
        }
        let _ = self.0.stop(varint(Code::H3_NO_ERROR.value()));
    }
}

fn id(id: noq::StreamId) -> StreamId {
    u64::from(id).try_into().expect("the same 62 bits")
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

fn write_error(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated {
            error_code: code.into(),
        },
        WriteError::ConnectionLost(error) => lost(error),
        error => StreamErrorIncoming::Unknown(error.into()),
    }
}

fn read_error(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated {
            error_code: code.into(),
        },
        ReadError::ConnectionLost(error) => lost(error),
        error => StreamErrorIncoming::Unknown(error.into()),
    }
}
