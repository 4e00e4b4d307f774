//! Streams.

use std::future::Future as _;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use noq::{ReadError, WriteError};

use super::{Both, lost, varint};

/// Most bytes taken from a stream at once.
const CHUNK: usize = 1 << 16;
/// Chunks looked through for a stream's end that nobody read.
const LEFTOVERS: usize = 4;

/// A stream of both directions.
pub struct BidiStream<B> {
    send: SendStream<B>,
    recv: RecvStream,
}

impl<B> BidiStream<B> {
    /// What the peer calls `id`.
    pub(super) fn new((send, recv): Both, id: u64, answers: bool) -> Self {
        Self {
            send: SendStream::new(send, id, answers),
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

/// The direction from here to the peer. Of a stream that the peer opened, `poll_finish` is ready only once the peer has acknowledged everything,
/// so that a server knows when a response needs it no more.
pub struct SendStream<B> {
    /// `None` if it goes nowhere.
    inner: Option<noq::SendStream>,
    id: u64,
    /// What h3 handed over and noq has not taken yet.
    data: Option<WriteBuf<B>>,
    /// Whether the peer opened it.
    answers: bool,
    /// Its end was written; ready once everything is acknowledged.
    ending: Option<Pin<Box<noq::Stopped>>>,
}

impl<B> SendStream<B> {
    pub(super) fn new(inner: noq::SendStream, id: u64, answers: bool) -> Self {
        Self {
            inner: Some(inner),
            id,
            data: None,
            answers,
            ending: None,
        }
    }

    /// One whose bytes nobody gets: a server's first of one direction.
    pub(super) fn nowhere() -> Self {
        Self {
            inner: None,
            id: 0b11,
            data: None,
            answers: false,
            ending: None,
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
        self.data = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        let Some(inner) = &mut self.inner else {
            return Poll::Ready(Ok(()));
        };
        let ending = match &mut self.ending {
            Some(ending) => ending,
            none => {
                let closed =
                    |closed: noq::ClosedStream| StreamErrorIncoming::Unknown(closed.into());
                inner.finish().map_err(closed)?;
                if !self.answers {
                    return Poll::Ready(Ok(()));
                }
                none.insert(Box::pin(inner.stopped()))
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
        if let Some(inner) = &mut self.inner {
            let _ = inner.reset(varint(reset_code));
        }
    }

    fn send_id(&self) -> StreamId {
        id(self.id)
    }
}

/// The direction from the peer to here.
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
        // Nothing is lost if the future is dropped: it takes a chunk only as it becomes ready.
        let chunk = ready!(pin!(self.inner.read_chunk(CHUNK)).poll(cx));
        Poll::Ready(chunk.map_err(read_error))
    }

    fn stop_sending(&mut self, error_code: u64) {
        // A stream that is read to its end needs no stopping.
        let _ = self.inner.stop(varint(error_code));
    }

    fn recv_id(&self) -> StreamId {
        id(self.id)
    }
}

impl Drop for RecvStream {
    /// What nobody wants to read is given up without blame (RFC 9114, section 4.1), unless it is all here already.
    fn drop(&mut self) {
        let mut nobody = Context::from_waker(Waker::noop());
        for _ in 0..LEFTOVERS {
            match pin!(self.inner.read_chunk(CHUNK)).poll(&mut nobody) {
                Poll::Ready(Ok(Some(_))) => {}
                Poll::Ready(_) => return,
                Poll::Pending => break,
            }
        }
        let _ = self.inner.stop(varint(Code::H3_NO_ERROR.value()));
    }
}

fn id(id: u64) -> StreamId {
    id.try_into().expect("62 bits")
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
