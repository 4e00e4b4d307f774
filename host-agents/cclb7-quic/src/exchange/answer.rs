//! An answer on its way to the transport, whichever that is.

use std::pin::pin;
use std::time::SystemTime;

use bytes::Bytes;
use frontage_quic::h3::SendStream;
use h3::error::{Code, StreamError};
use h3::server::RequestStream;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;

use crate::body::ResponseBody;

/// Where an answer is written.
pub trait Sink {
    /// Why nothing more can be written.
    type Error;

    /// Status and header.
    fn head(&mut self, head: Response<()>) -> impl Future<Output = Result<(), Self::Error>> + Send;
    /// Some of the body.
    fn data(&mut self, data: Bytes) -> impl Future<Output = Result<(), Self::Error>> + Send;
    /// What follows the body.
    fn trailers(
        &mut self,
        trailers: HeaderMap,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
    /// The answer ends before its time.
    fn reset(&mut self, code: Code);
}

impl Sink for RequestStream<SendStream<Bytes>, Bytes> {
    type Error = StreamError;

    async fn head(&mut self, head: Response<()>) -> Result<(), StreamError> {
        self.send_response(head).await
    }

    async fn data(&mut self, data: Bytes) -> Result<(), StreamError> {
        self.send_data(data).await
    }

    async fn trailers(&mut self, trailers: HeaderMap) -> Result<(), StreamError> {
        self.send_trailers(trailers).await
    }

    fn reset(&mut self, code: Code) {
        self.stop_stream(code);
    }
}

/// What became of an answer whose stream lives.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it was written.
    Whole,
    /// Its body broke off, and the stream was reset.
    Broken,
}

/// Bytes of the body that `response` will have on the wire, if known.
pub fn size(method: &Method, response: &Response<ResponseBody>) -> Option<u64> {
    let none = response.status() == StatusCode::NOT_MODIFIED
        || response.status() == StatusCode::NO_CONTENT;
    if *method == Method::HEAD || none {
        return Some(0);
    }
    let announced = response.headers().get(header::CONTENT_LENGTH);
    announced
        .and_then(|length| length.to_str().ok()?.parse().ok())
        .or_else(|| response.body().size_hint().exact())
}

/// Writes `response` to `sink`, and tells `written` of each piece of the body that it took.
pub async fn send<S: Sink>(
    sink: &mut S,
    response: Response<ResponseBody>,
    mut written: impl FnMut(u64),
) -> Result<Outcome, S::Error> {
    let (mut head, body) = response.into_parts();
    // RFC 9110, section 6.6.1: a server with a clock says when it answered.
    let now = httpdate::fmt_http_date(SystemTime::now());
    let now = HeaderValue::from_str(&now).expect("letters and digits");
    head.headers.entry(header::DATE).or_insert(now);
    sink.head(Response::from_parts(head, ())).await?;
    let mut body = pin!(body);
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                // Half an answer must not look like a whole one.
                tracing::warn!("response body ended early: {error}");
                sink.reset(Code::H3_INTERNAL_ERROR);
                return Ok(Outcome::Broken);
            }
        };
        match frame.into_data() {
            Ok(data) => {
                let length = data.len() as u64;
                sink.data(data).await?;
                written(length);
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    sink.trailers(trailers).await?;
                }
            }
        }
    }
    Ok(Outcome::Whole)
}
