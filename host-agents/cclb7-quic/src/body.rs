//! Bodies of requests, from HTTP/3 to what `http-body` wants.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use frontage_quic::h3::RecvStream;
use h3::error::StreamError;
use h3::server::RequestStream;
use http::{HeaderMap, Method, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;

/// Any error: it can only end its own request.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// The body of a response, wherever it comes from.
pub type ResponseBody = UnsyncBoxBody<Bytes, Error>;

/// The body of a request. Trailers are not passed on.
pub struct RequestBody {
    /// `None` if there is nothing to read.
    stream: Option<RequestStream<RecvStream, Bytes>>,
    length: Option<u64>,
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
            stream: (!empty).then_some(stream),
            length: if empty { Some(0) } else { length },
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(None);
        };
        let data = ready!(stream.poll_recv_data(cx));
        let data =
            data.map(|data| data.map(|mut data| Frame::data(data.copy_to_bytes(data.remaining()))));
        Poll::Ready(data.transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
