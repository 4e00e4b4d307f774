// SPDX-License-Identifier: Apache-2.0
//! Sending of a response on any transport.

use std::cell::RefCell;
use std::pin::pin;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use frontage_quic::h3::{SendStream, send_data};
use h3::error::{Code, StreamError};
use h3::server::RequestStream;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;

use crate::body::ResponseBody;

/// Transport of a response.
pub trait Sink {
    /// Why nothing more can be sent.
    type Error;

    /// Send status and header.
    fn head(&mut self, head: Response<()>) -> impl Future<Output = Result<(), Self::Error>> + Send;
    /// Send a part of the body.
    fn data(&mut self, data: Bytes) -> impl Future<Output = Result<(), Self::Error>> + Send;
    /// Send the trailers.
    fn trailers(
        &mut self,
        trailers: HeaderMap,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
    /// End the response early.
    fn reset(&mut self, code: Code);
}

impl Sink for RequestStream<SendStream<Bytes>, Bytes> {
    type Error = StreamError;

    async fn head(&mut self, head: Response<()>) -> Result<(), StreamError> {
        self.send_response(head).await
    }

    async fn data(&mut self, data: Bytes) -> Result<(), StreamError> {
        send_data(self, data).await
    }

    async fn trailers(&mut self, trailers: HeaderMap) -> Result<(), StreamError> {
        self.send_trailers(trailers).await
    }

    fn reset(&mut self, code: Code) {
        self.stop_stream(code);
    }
}

/// Outcome of a response whose stream is still open.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The whole response was sent.
    Complete,
    /// The body failed, and the stream was reset.
    Aborted,
}

/// Return a response without a body.
pub fn status(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::default());
    *response.status_mut() = status;
    response
}

/// Return how many body bytes `response` will have on the wire, if known.
pub fn body_size(method: &Method, response: &Response<ResponseBody>) -> Option<u64> {
    let has_no_body = response.status() == StatusCode::NOT_MODIFIED
        || response.status() == StatusCode::NO_CONTENT;
    if *method == Method::HEAD || has_no_body {
        return Some(0);
    }
    let announced = response.headers().get(header::CONTENT_LENGTH);
    announced
        .and_then(|length| length.to_str().ok()?.parse().ok())
        .or_else(|| response.body().size_hint().exact())
}

/// Return the current time as the value of `Date`. Each thread formats it once a second.
pub(crate) fn date() -> HeaderValue {
    thread_local! {
        static LATEST: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) };
    }
    let now = SystemTime::now();
    let second = now
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| age.as_secs());
    LATEST.with_borrow_mut(|latest| match latest {
        Some((at, value)) if *at == second => value.clone(),
        _ => {
            let value = header_value(httpdate::fmt_http_date(now));
            latest.insert((second, value)).1.clone()
        }
    })
}

/// Return the value of a field.
///
/// # Panics
/// If `text` is not a valid value.
pub(crate) fn header_value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("valid header value")
}

/// Send `response` to `sink`, and call `on_sent` with the length of each part of the body that was sent.
pub async fn send<S: Sink>(
    sink: &mut S,
    response: Response<ResponseBody>,
    mut on_sent: impl FnMut(u64),
) -> Result<Outcome, S::Error> {
    let (mut head, body) = response.into_parts();
    // A server with a clock must send Date (RFC 9110, section 6.6.1).
    head.headers.entry(header::DATE).or_insert_with(date);
    sink.head(Response::from_parts(head, ())).await?;
    let mut body = pin!(body);
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                // A truncated response must not look complete.
                tracing::warn!("response body failed: {error}");
                sink.reset(Code::H3_INTERNAL_ERROR);
                return Ok(Outcome::Aborted);
            }
        };
        match frame.into_data() {
            Ok(data) => {
                let length = data.len() as u64;
                sink.data(data).await?;
                on_sent(length);
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    sink.trailers(trailers).await?;
                }
            }
        }
    }
    Ok(Outcome::Complete)
}
