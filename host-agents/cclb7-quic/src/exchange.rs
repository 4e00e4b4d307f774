//! One request and its answer.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use frontage_quic::h3::{BidiStream, Connection, SendStream};
use frontage_quic::meter::{self, Loads, Meter};
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;

use crate::body::{RequestBody, ResponseBody};
use crate::log::{Line, Log};
use crate::metrics::Metrics;
use crate::routes::Routes;

/// What all exchanges need.
pub struct Shared {
    /// Who answers.
    pub routes: Routes,
    /// What is under way.
    pub loads: Arc<Loads>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What is written down.
    pub log: Log,
}

/// The connection of an exchange.
pub struct Peer {
    /// The client as it came.
    pub client: SocketAddr,
    /// Takes the sizes of responses, if packets are to tell of them; it sees each end.
    pub meter: Option<Arc<Meter>>,
}

/// Answers the request of `resolver`, until the client has acknowledged the answer.
pub async fn run(
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    resolver: RequestResolver<Connection, Bytes>,
) -> Result<(), StreamError> {
    let (request, stream) = resolver.resolve_request().await?;
    let (begun, time) = (Instant::now(), SystemTime::now());
    let (mut send, receive): (_, RequestStream<_, _>) =
        RequestStream::<BidiStream<Bytes>, Bytes>::split(stream);
    let mut line = Line {
        time: time
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0., |t| t.as_secs_f64()),
        client: peer.client.to_string(),
        method: request.method().to_string(),
        authority: request
            .uri()
            .authority()
            .map_or_else(String::new, ToString::to_string),
        path: request
            .uri()
            .path_and_query()
            .map_or_else(String::new, ToString::to_string),
        status: 0,
        bytes: 0,
        seconds: 0.,
        whole: false,
    };
    let method = request.method().clone();
    let body = RequestBody::new(receive, request.method(), request.headers());
    let response = shared
        .routes
        .answer(peer.client, request.map(|()| body))
        .await;
    line.status = response.status().as_u16();
    let size = size(&method, &response);
    let unmetered = match &peer.meter {
        Some(meter) => {
            meter.begin(send.send_id().into_inner(), size);
            None
        }
        None => Some(meter::Response::new(shared.loads.clone(), size)),
    };
    let sent = answer(&shared, &mut send, response, &mut line.bytes).await;
    line.whole = matches!(sent, Ok(Outcome::Whole));
    drop(unmetered);
    line.seconds = begun.elapsed().as_secs_f64();
    shared.metrics.answered(line.status);
    shared.log.write(line);
    match sent? {
        Outcome::Whole => send.finish().await,
        Outcome::Broken => Ok(()),
    }
}

/// What became of an answer whose stream lives.
#[derive(PartialEq, Eq)]
enum Outcome {
    Whole,
    Broken,
}

/// Bytes of the body that `response` will have on the wire, if known.
fn size(method: &Method, response: &Response<ResponseBody>) -> Option<u64> {
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

async fn answer(
    shared: &Shared,
    send: &mut RequestStream<SendStream<Bytes>, Bytes>,
    response: Response<ResponseBody>,
    bytes: &mut u64,
) -> Result<Outcome, StreamError> {
    let (mut head, body) = response.into_parts();
    // RFC 9110, section 6.6.1: a server with a clock says when it answered.
    let now = httpdate::fmt_http_date(SystemTime::now());
    let now = HeaderValue::from_str(&now).expect("letters and digits");
    head.headers.entry(header::DATE).or_insert(now);
    send.send_response(Response::from_parts(head, ())).await?;
    let mut body = pin!(body);
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                // Half an answer must not look like a whole one.
                eprintln!("frontage-cclb7-quic: a body broke off: {error}");
                send.stop_stream(Code::H3_INTERNAL_ERROR);
                return Ok(Outcome::Broken);
            }
        };
        match frame.into_data() {
            Ok(data) => {
                let length = data.len() as u64;
                send.send_data(data).await?;
                *bytes += length;
                shared.metrics.body_bytes.fetch_add(length, Relaxed);
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    send.send_trailers(trailers).await?;
                }
            }
        }
    }
    Ok(Outcome::Whole)
}
