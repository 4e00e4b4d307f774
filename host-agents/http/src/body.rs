// SPDX-License-Identifier: Apache-2.0
//! Request and response bodies as `http-body` streams.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use frontage_quic::h3::RecvStream;
use h3::server::RequestStream;
use http::{HeaderMap, Method, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;

/// Error of a body, which ends only its own request.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// Body of a response, whatever its source.
pub type ResponseBody = UnsyncBoxBody<Bytes, Error>;

/// Body of a request, without trailers.
pub struct RequestBody {
    /// Data that was read ahead.
    read: Bytes,
    /// Source of the rest; `None` at the end.
    stream: Option<Source>,
    length: Option<u64>,
}

/// Source of a body.
enum Source {
    Http3(RequestStream<RecvStream, Bytes>),
    Other(UnsyncBoxBody<Bytes, Error>),
}

impl RequestBody {
    /// Create the body that `method` and `headers` announce.
    ///
    /// HTTP/3 requests need not announce an empty body. A method without defined body semantics (RFC 9110, section 9.3) has a
    /// body only if the length is given.
    pub fn new(
        stream: RequestStream<RecvStream, Bytes>,
        method: &Method,
        headers: &HeaderMap,
    ) -> Self {
        let length = headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let has_semantics = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
        let empty = length.map_or(!has_semantics, |length: u64| length == 0);
        Self {
            read: Bytes::new(),
            stream: (!empty).then_some(Source::Http3(stream)),
            length: if empty { Some(0) } else { length },
        }
    }

    /// Create a body from bytes.
    pub fn whole(body: Bytes) -> Self {
        Self {
            length: Some(body.len() as u64),
            read: body,
            stream: None,
        }
    }

    /// Create a body from another stream.
    pub fn streamed(body: UnsyncBoxBody<Bytes, Error>) -> Self {
        let empty = body.is_end_stream();
        Self {
            read: Bytes::new(),
            length: body.size_hint().exact(),
            stream: (!empty).then_some(Source::Other(body)),
        }
    }

    /// Read the whole body, and return it unless it is longer than `max` bytes. The body still yields everything that was read.
    pub async fn collect_up_to(&mut self, max: usize) -> Result<Option<Bytes>, Error> {
        let too_long = |length| length > max as u64;
        if self.length.is_some_and(too_long) {
            return Ok(None);
        }
        let mut read = BytesMut::new();
        while read.len() <= max {
            match self.frame().await {
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        read.put(data);
                    }
                }
                None => {
                    *self = Self::whole(read.freeze());
                    return Ok(Some(self.read.clone()));
                }
            }
        }
        self.read = read.freeze();
        Ok(None)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if !self.read.is_empty() {
            let read = std::mem::take(&mut self.read);
            return Poll::Ready(Some(Ok(Frame::data(read))));
        }
        match &mut self.stream {
            None => Poll::Ready(None),
            Some(Source::Http3(stream)) => {
                let data = ready!(stream.poll_recv_data(cx))?;
                let data = data.map(|mut data| data.copy_to_bytes(data.remaining()));
                Poll::Ready(data.map(|data| Ok(Frame::data(data))))
            }
            Some(Source::Other(body)) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.stream.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
