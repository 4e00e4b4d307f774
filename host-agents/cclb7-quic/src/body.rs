//! Bodies of requests, from HTTP/3 to what `http-body` wants.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use frontage_quic::h3::RecvStream;
use h3::server::RequestStream;
use http::{HeaderMap, Method, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;

/// Any error: it can only end its own request.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// The body of a response, wherever it comes from.
pub type ResponseBody = UnsyncBoxBody<Bytes, Error>;

/// The body of a request. Trailers are not passed on.
pub struct RequestBody {
    /// What was read before it is passed on.
    read: Bytes,
    /// `None` if there is nothing more to read.
    stream: Option<Source>,
    length: Option<u64>,
}

/// Where the rest of a body comes from.
enum Source {
    Http3(RequestStream<RecvStream, Bytes>),
    Other(UnsyncBoxBody<Bytes, Error>),
}

impl RequestBody {
    /// The body that `method` and `headers` announce. HTTP/3 need not tell that there is none; a method whose body means nothing (RFC 9110,
    /// section 9.3) has one only if its length is given.
    pub fn new(
        stream: RequestStream<RecvStream, Bytes>,
        method: &Method,
        headers: &HeaderMap,
    ) -> Self {
        let length = headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let meant = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
        let empty = length.map_or(!meant, |length: u64| length == 0);
        Self {
            read: Bytes::new(),
            stream: (!empty).then_some(Source::Http3(stream)),
            length: if empty { Some(0) } else { length },
        }
    }

    /// A body that is there.
    pub fn whole(body: Bytes) -> Self {
        Self {
            length: Some(body.len() as u64),
            read: body,
            stream: None,
        }
    }

    /// A body that comes otherwise.
    pub fn streamed(body: UnsyncBoxBody<Bytes, Error>) -> Self {
        let empty = body.is_end_stream();
        Self {
            read: Bytes::new(),
            length: body.size_hint().exact(),
            stream: (!empty).then_some(Source::Other(body)),
        }
    }

    /// Waits until all of it is there, or more than `most` bytes are, and keeps what came; `None` if there is more.
    pub async fn collect_up_to(&mut self, most: usize) -> Result<Option<Bytes>, Error> {
        let too_long = |length| length > most as u64;
        if self.length.is_some_and(too_long) {
            return Ok(None);
        }
        let mut read = BytesMut::new();
        while read.len() <= most {
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
