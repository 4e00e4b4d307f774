// SPDX-License-Identifier: Apache-2.0
//! One request and its response.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use frontage_handoff::delegator::RESET_PLACEHOLDER;
use frontage_http::access_log::{AccessLog, Line};
use frontage_http::body::{Error, RequestBody};
use frontage_http::priority::Priority;
use frontage_http::response;
use frontage_http::routes::{Routes, Target};
use frontage_quic::announce::Announcer;
use frontage_quic::h3::{BidiStream, Connection, RawStreams, SendStream, UnusedStreams};
use frontage_quic::meter::{self, Loads};
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use http::{Request, StatusCode};

use crate::early::HandshakeProgress;
use crate::handoff::{DelegatedResponse, Outcome, Pool, RequestDelegator, ResponseStream};
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
    /// Announces addresses to the client. It needs the observer.
    pub announcer: Option<Announcer>,
    /// Delegates requests to real servers, if there are any.
    pub delegator: Option<RequestDelegator>,
    /// Streams of which the balancer sends the rest.
    pub raw: RawStreams,
    /// Streams on which h3 has sent nothing.
    pub unused: UnusedStreams,
    /// The handshake, which may still be in progress.
    pub handshake: HandshakeProgress,
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
    let (mut send, receive): (_, RequestStream<_, _>) =
        RequestStream::<BidiStream<Bytes>, Bytes>::split(stream);
    let mut record = Record::new(&shared, &peer, &request);
    let method = request.method().clone();
    if !peer.handshake.admits(&method).await {
        return Ok(());
    }
    let requested = Priority::requested(request.headers());
    let body = RequestBody::new(receive, request.method(), request.headers());
    let mut request = request.map(|()| body);
    let target = shared.routes.target(&request);
    let stream = send.send_id().into_inner();
    let has_real_servers = matches!(target, Some(Target::RealServers(_)));
    if has_real_servers && !peer.handshake.validates_address().await {
        return Ok(());
    }
    if !peer.handshake.is_complete() {
        shared.metrics.early_requests.fetch_add(1, Relaxed);
    }
    if let (Some(Target::RealServers(pool)), Some(delegator)) = (target, &peer.delegator) {
        // In its own memory, so that exchanges without real servers need little.
        let delegated = delegate(&peer, (pool, delegator), &mut send, &mut request, requested);
        // A client that does not send the whole request body gets no response.
        let Ok(delegated) = Box::pin(delegated).await else {
            return Ok(());
        };
        if let Some(response) = delegated {
            // noq finishes a stream that was not reset when it is dropped.
            drop(send);
            record.finish_delegated(response);
            return Ok(());
        }
    }
    if let Some(Target::Files(files)) = target
        && let Some(response) = files.prepared(&request)
        && let Some(mut send) = peer.unused.take(stream)
    {
        record.begin(stream, StatusCode::OK, Some(response.length()), requested);
        let sent = response.send(&mut send, |length| record.on_sent(length));
        let is_whole = sent.await.is_ok();
        record.finish(is_whole);
        if is_whole && send.finish().is_ok() {
            // Fails if the client has stopped the stream or is gone.
            let _ = send.stopped().await;
        }
        return Ok(());
    }
    let response = shared.routes.respond(target, peer.client, request).await;
    let size = response::body_size(&method, &response);
    let priority = requested.merged(response.headers());
    record.begin(stream, response.status(), size, priority);
    let sent = response::send(&mut send, response, |length| record.on_sent(length)).await;
    record.finish(matches!(sent, Ok(response::Outcome::Complete)));
    match sent? {
        response::Outcome::Complete => send.finish().await,
        response::Outcome::Aborted => Ok(()),
    }
}

/// Records one exchange in the loads, the metrics and the access log.
struct Record<'a> {
    shared: &'a Shared,
    peer: &'a Peer,
    start: Instant,
    line: Line,
    /// Counts the response in the loads while no observer of the packets does.
    unmetered: Option<meter::Response>,
}

impl<'a> Record<'a> {
    /// Create the record of a `request` that has just arrived from `peer`.
    fn new(shared: &'a Shared, peer: &'a Peer, request: &Request<()>) -> Self {
        Self {
            shared,
            peer,
            start: Instant::now(),
            line: Line::new(&shared.log, &peer.client, request),
            unmetered: None,
        }
    }

    /// Begin a response of `size` bytes, if known, on `stream`.
    fn begin(&mut self, stream: u64, status: StatusCode, size: Option<u64>, priority: Priority) {
        self.line.status = status.as_u16();
        match &self.peer.observer {
            Some(observer) => {
                let meter = observer.meter();
                meter.begin_urgent(stream, size, priority.urgency);
            }
            None => {
                self.unmetered = Some(meter::Response::new(self.shared.loads.clone(), size));
            }
        }
    }

    /// Record that the transport has accepted `length` bytes of the body.
    fn on_sent(&mut self, length: u64) {
        self.line.bytes += length;
        let body_bytes = &self.shared.metrics.body_bytes;
        body_bytes.fetch_add(length, Relaxed);
    }

    /// End the exchange. `is_whole` is true if the response is complete.
    fn finish(mut self, is_whole: bool) {
        self.line.whole = is_whole;
        self.shared.metrics.on_response(self.line.status);
        self.line.finish(self.start, &self.shared.log);
    }

    /// End an exchange whose response came from a real server.
    fn finish_delegated(mut self, response: DelegatedResponse) {
        self.line.status = response.status;
        self.line.bytes = response.bytes;
        self.line.server = Some(response.server);
        self.finish(response.is_complete);
    }
}

/// Have a real server of the pool respond to `request`, and continue its response if it dies. Return `None` if this server must
/// respond.
///
/// # Errors
/// If the client does not send the whole request body.
async fn delegate(
    peer: &Peer,
    (pool, delegator): (&Pool, &RequestDelegator),
    send: &mut RequestStream<SendStream<Bytes>, Bytes>,
    request: &mut Request<RequestBody>,
    requested: Priority,
) -> Result<Option<DelegatedResponse>, Error> {
    let stream = send.send_id().into_inner();
    Ok(match delegator.delegate(pool, stream, request).await? {
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
                send,
                raw: &peer.raw,
                client: peer.client,
            };
            let head = head_of(request);
            Some(delegator.resume(pool, &head, interruption, &mut rest).await)
        }
        Outcome::Local => None,
    })
}
