// SPDX-License-Identifier: Apache-2.0
//! Streams for crate `h3`.

use std::future::Future as _;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use noq::{ReadError, WriteError};

use super::raw::{RawStreams, skip_data_head};
use super::{StreamPair, lost, varint};

/// Most bytes read from a stream at once.
const MAX_CHUNK: usize = 1 << 16;
/// Most unread chunks of a dropped stream that are searched for the stream's end.
const MAX_UNREAD_CHUNKS: usize = 4;

/// A bidirectional stream.
pub struct BidiStream<B> {
    send: SendStream<B>,
    recv: RecvStream,
}

impl<B> BidiStream<B> {
    /// Wrap a stream that the peer knows as `id`, and opened if there are `raw` streams.
    pub(super) fn new((send, recv): StreamPair, id: u64, raw: Option<RawStreams>) -> Self {
        Self {
            send: SendStream::new(send, id, raw),
            recv: RecvStream { inner: recv, id },
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

/// The sending direction of a stream. If the peer opened the stream, `poll_finish` completes once the peer has
/// acknowledged everything, so that a server knows when a response no longer needs it.
pub struct SendStream<B> {
    /// `None` if everything written is discarded.
    inner: Option<noq::SendStream>,
    id: u64,
    /// Data that noq has not accepted yet.
    data: Option<WriteBuf<B>>,
    /// Streams that the peer opened and on which data is written without frames, if the peer opened this one.
    raw: Option<RawStreams>,
    /// Set once the end is written; ready once everything is acknowledged.
    acknowledged: Option<Pin<Box<noq::Stopped>>>,
}

impl<B> SendStream<B> {
    pub(super) fn new(inner: noq::SendStream, id: u64, raw: Option<RawStreams>) -> Self {
        Self {
            inner: Some(inner),
            id,
            data: None,
            raw,
            acknowledged: None,
        }
    }

    /// Create a stream that discards what is written, in place of a server's first unidirectional stream.
    pub(super) fn discarding() -> Self {
        Self {
            inner: None,
            id: 0b11,
            data: None,
            raw: None,
            acknowledged: None,
        }
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        if let Some(inner) = &mut self.inner {
            while let Some(data) = self.data.as_mut().filter(|data| data.has_remaining()) {
                let written = ready!(Pin::new(&mut *inner).poll_write(cx, data.chunk()))
                    .map_err(write_error)?;
                data.advance(written);
            }
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
        let mut data = data.into();
        if self.raw.as_ref().is_some_and(|raw| raw.contains(self.id)) {
            skip_data_head(&mut data);
        }
        self.data = Some(data);
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        let Some(inner) = &mut self.inner else {
            return Poll::Ready(Ok(()));
        };
        let acknowledged = match &mut self.acknowledged {
            Some(acknowledged) => acknowledged,
            none => {
                let closed =
                    |closed: noq::ClosedStream| StreamErrorIncoming::Unknown(closed.into());
                inner.finish().map_err(closed)?;
                if self.raw.is_none() {
                    return Poll::Ready(Ok(()));
                }
                none.insert(Box::pin(inner.stopped()))
            }
        };
        match ready!(acknowledged.as_mut().poll(cx)) {
            Ok(None) => Poll::Ready(Ok(())),
            Ok(Some(code)) => Poll::Ready(Err(write_error(WriteError::Stopped(code)))),
            Err(error) => Poll::Ready(Err(write_error(error.into()))),
        }
    }

    fn reset(&mut self, reset_code: u64) {
        // A closed stream needs no reset.
        if let Some(inner) = &mut self.inner {
            let _ = inner.reset(varint(reset_code));
        }
    }

    fn send_id(&self) -> StreamId {
        id(self.id)
    }
}

/// The receiving direction of a stream.
pub struct RecvStream {
    inner: noq::RecvStream,
    id: u64,
}

impl RecvStream {
    pub(super) fn new(inner: noq::RecvStream) -> Self {
        let id = inner.id().into();
        Self { inner, id }
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        // Dropping the future loses nothing: it removes a chunk only when it becomes ready.
        let chunk = ready!(pin!(self.inner.read_chunk(MAX_CHUNK)).poll(cx));
        Poll::Ready(chunk.map_err(read_error))
    }

    fn stop_sending(&mut self, error_code: u64) {
        // A stream that has ended needs no STOP_SENDING.
        let _ = self.inner.stop(varint(error_code));
    }

    fn recv_id(&self) -> StreamId {
        id(self.id)
    }
}

impl Drop for RecvStream {
    /// Stop the peer from sending the rest, with H3_NO_ERROR (RFC 9114, section 4.1), unless all of it has arrived
    /// already.
    fn drop(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..MAX_UNREAD_CHUNKS {
            match pin!(self.inner.read_chunk(MAX_CHUNK)).poll(&mut context) {
                Poll::Ready(Ok(Some(_))) => {}
                Poll::Ready(_) => return,
                Poll::Pending => break,
            }
        }
        let _ = self.inner.stop(varint(Code::H3_NO_ERROR.value()));
    }
}

fn id(id: u64) -> StreamId {
    id.try_into().expect("stream ids have 62 bits")
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
