// SPDX-License-Identifier: Apache-2.0
//! One request and its response.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use frontage_handoff::delegator::RESET_PLACEHOLDER;
use frontage_http::access_log::{AccessLog, Line};
use frontage_http::body::RequestBody;
use frontage_http::priority::Priority;
use frontage_http::response;
use frontage_http::routes::{Routes, Target};
use frontage_quic::h3::{BidiStream, Connection, RawStreams};
use frontage_quic::meter::{self, Loads};
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use http::Request;

use crate::handoff::{Outcome, Pool, RequestDelegator, ResponseStream};
use crate::metrics::Metrics;
use crate::observer::ConnectionObserver;

/// State that all exchanges share.
pub struct Shared {
    /// Routes of requests.
    pub routes: Routes<Pool>,
    /// Load of this server.
    pub loads: Arc<Loads>,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Access log.
    pub log: AccessLog,
}

/// The connection of an exchange.
pub struct Peer {
    /// The client's first address.
    pub client: SocketAddr,
    /// Observer of the packets, if there is one.
    pub observer: Option<ConnectionObserver>,
    /// Delegates requests to real servers, if there are any.
    pub delegator: Option<RequestDelegator>,
    /// Streams of which the balancer sends the rest.
    pub raw: RawStreams,
}

/// Return a request without its body.
fn head_of<B>(request: &Request<B>) -> Request<()> {
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = request.uri().clone();
    *head.headers_mut() = request.headers().clone();
    head
}

/// Respond to the request of `resolver`. Completes once the client has acknowledged the response.
pub async fn run(
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    resolver: RequestResolver<Connection, Bytes>,
) -> Result<(), StreamError> {
    let (request, stream) = resolver.resolve_request().await?;
    let start = Instant::now();
    let (mut send, receive): (_, RequestStream<_, _>) =
        RequestStream::<BidiStream<Bytes>, Bytes>::split(stream);
    let mut line = Line::new(&peer.client, &request);
    let method = request.method().clone();
    let requested = Priority::requested(request.headers());
    let body = RequestBody::new(receive, request.method(), request.headers());
    let mut request = request.map(|()| body);
    let target = shared.routes.target(&request);
    let stream = send.send_id().into_inner();
    if let (Some(Target::RealServers(pool)), Some(delegator)) = (target, &peer.delegator) {
        // A client that does not send the whole request body gets no response.
        let Ok(outcome) = delegator.delegate(pool, stream, &mut request).await else {
            return Ok(());
        };
        let delegated = match outcome {
            Outcome::Delegated(response) => {
                if !response.is_complete {
                    send.stop_stream(Code::from(u64::from(RESET_PLACEHOLDER)));
                }
                Some(response)
            }
            Outcome::Interrupted(interruption) => {
                if let Some(observer) = &peer.observer {
                    let remaining = Some(interruption.remaining());
                    observer
                        .meter()
                        .begin_urgent(stream, remaining, requested.urgency);
                }
                let mut rest = ResponseStream {
                    send: &mut send,
                    raw: &peer.raw,
                    client: peer.client,
                };
                let head = head_of(&request);
                let resumed = delegator.resume(pool, &head, interruption, &mut rest);
                Some(resumed.await)
            }
            Outcome::Local => None,
        };
        if let Some(response) = delegated {
            // noq finishes a stream that was not reset when it is dropped.
            drop(send);
            shared.metrics.on_response(response.status);
            line.status = response.status;
            line.bytes = response.bytes;
            line.whole = response.is_complete;
            line.server = Some(response.server);
            line.finish(start, &shared.log);
            return Ok(());
        }
    }
    let response = shared.routes.respond(target, peer.client, request).await;
    line.status = response.status().as_u16();
    let size = response::body_size(&method, &response);
    let unmetered = match &peer.observer {
        Some(observer) => {
            let urgency = requested.merged(response.headers()).urgency;
            observer.meter().begin_urgent(stream, size, urgency);
            None
        }
        None => Some(meter::Response::new(shared.loads.clone(), size)),
    };
    let on_sent = |length| {
        line.bytes += length;
        shared.metrics.body_bytes.fetch_add(length, Relaxed);
    };
    let sent = response::send(&mut send, response, on_sent).await;
    line.whole = matches!(sent, Ok(response::Outcome::Complete));
    drop(unmetered);
    shared.metrics.on_response(line.status);
    line.finish(start, &shared.log);
    match sent? {
        response::Outcome::Complete => send.finish().await,
        response::Outcome::Aborted => Ok(()),
    }
}
