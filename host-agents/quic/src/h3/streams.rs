// SPDX-License-Identifier: Apache-2.0
//! Streams for crate `h3`.

use std::cell::RefCell;
use std::future::Future as _;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use h3::error::{Code, StreamError};
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use h3::server::RequestStream;
use noq::{ReadError, WriteError};

use super::raw::{RawStreams, skip_data_head};
use super::unused::UnusedStreams;
use super::{StreamPair, lost, varint};

/// Most bytes read from a stream at once.
const MAX_CHUNK: usize = 1 << 16;
/// Most unread chunks of a dropped stream that are searched for the stream's end.
const MAX_UNREAD_CHUNKS: usize = 4;

thread_local! {
    /// The data of the DATA frame that this thread is about to pass to h3.
    static PASSED: RefCell<Option<Bytes>> = const { RefCell::new(None) };
}

/// Send `data` in a DATA frame without copying them. h3 shows a stream only slices of what it writes, which noq would have to
/// copy, so the data take a second way to the stream.
///
/// # Errors
/// If the client stopped the stream or the connection is lost.
pub async fn send_data(
    stream: &mut RequestStream<SendStream<Bytes>, Bytes>,
    data: Bytes,
) -> Result<(), StreamError> {
    PASSED.set(Some(data.clone()));
    // h3 calls `SendStream::send_data` at once, on this thread.
    stream.send_data(data).await
}

/// Return the `part` of `whole` that is the memory of `slice`, if it is.
fn part_of(whole: &Bytes, slice: &[u8]) -> Option<Bytes> {
    let (whole_range, range) = (whole.as_ptr_range(), slice.as_ptr_range());
    let contains = whole_range.start <= range.start && range.end <= whole_range.end;
    (contains && !slice.is_empty()).then(|| whole.slice_ref(slice))
}

/// A bidirectional stream.
pub struct BidiStream<B> {
    send: SendStream<B>,
    recv: RecvStream,
}

impl<B> BidiStream<B> {
    /// Wrap a stream that this host opened and the peer knows as `id`.
    pub(super) fn new((send, recv): StreamPair, id: u64) -> Self {
        Self {
            send: SendStream::new(send, id),
            recv: RecvStream { inner: recv, id },
        }
    }

    /// Wrap a stream that the peer opened as `id`. Its sending direction is `unused` at first, and data may be `raw`.
    pub(super) fn accepted(
        (send, recv): StreamPair,
        id: u64,
        unused: UnusedStreams,
        raw: RawStreams,
    ) -> Self {
        unused.insert(id, send);
        let mut send = SendStream::over(Inner::Unused(unused), id);
        send.raw = Some(raw);
        Self {
            send,
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
    inner: Inner,
    id: u64,
    /// Data that noq has not accepted yet.
    data: Option<WriteBuf<B>>,
    /// The bytes that `data` refers to, if they came through [`send_data`].
    passed: Option<Bytes>,
    /// Streams that the peer opened and on which data is written without frames, if the peer opened this one.
    raw: Option<RawStreams>,
    /// Set once the end is written; ready once everything is acknowledged.
    acknowledged: Option<Pin<Box<noq::Stopped>>>,
}

/// noq's half of a sending direction.
enum Inner {
    Used(noq::SendStream),
    /// h3 has not used it yet, so others may take it.
    Unused(UnusedStreams),
    /// Everything written is discarded.
    Discarding,
}

impl Inner {
    /// Return noq's half of the stream `id`, which is used from now on.
    fn get(&mut self, id: u64) -> Option<&mut noq::SendStream> {
        if let Self::Unused(unused) = self {
            *self = unused.take(id).map_or(Self::Discarding, Self::Used);
        }
        match self {
            Self::Used(stream) => Some(stream),
            _ => None,
        }
    }
}

impl<B> SendStream<B> {
    pub(super) fn new(inner: noq::SendStream, id: u64) -> Self {
        Self::over(Inner::Used(inner), id)
    }

    /// Create a stream that discards what is written, in place of a server's first unidirectional stream.
    pub(super) fn discarding() -> Self {
        Self::over(Inner::Discarding, 0b11)
    }

    fn over(inner: Inner, id: u64) -> Self {
        Self {
            inner,
            id,
            data: None,
            passed: None,
            raw: None,
            acknowledged: None,
        }
    }
}

impl<B> Drop for SendStream<B> {
    /// Drop noq's half, which finishes it, unless it was taken.
    fn drop(&mut self) {
        if let Inner::Unused(unused) = &self.inner {
            unused.take(self.id);
        }
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        if let Some(inner) = self.inner.get(self.id) {
            while let Some(data) = self.data.as_mut().filter(|data| data.has_remaining()) {
                let chunk = data.chunk();
                let passed = self.passed.as_ref();
                let written = match passed.and_then(|passed| part_of(passed, chunk)) {
                    Some(part) => {
                        // Dropping the future loses nothing: it writes only when it becomes ready.
                        pin!(inner.write_many_chunks(&mut &mut [part][..])).poll(cx)
                    }
                    None => Pin::new(&mut *inner).poll_write(cx, chunk),
                };
                data.advance(ready!(written).map_err(write_error)?);
            }
        }
        (self.data, self.passed) = (None, None);
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
        (self.data, self.passed) = (Some(data), PASSED.take());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        let Some(inner) = self.inner.get(self.id) else {
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
        if let Some(inner) = self.inner.get(self.id) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slice_becomes_a_part_of_the_same_memory() {
        let whole = Bytes::from(vec![1, 2, 3, 4]);
        let part = part_of(&whole, &whole[1..3]).expect("a part");
        assert_eq!((part.as_ptr(), part.len()), (whole[1..].as_ptr(), 2));
        assert_eq!(part_of(&whole.slice(..2), &whole[1..3]), None);
        assert_eq!(part_of(&whole, &[2, 3]), None);
        assert_eq!(part_of(&whole, &[]), None);
    }
}
