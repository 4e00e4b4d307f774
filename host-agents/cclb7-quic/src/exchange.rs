//! One request and its answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use frontage_handoff::lend::RESET;
use frontage_quic::h3::{BidiStream, Connection};
use frontage_quic::meter::{self, Loads};
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};

use crate::body::RequestBody;
use crate::connection::Watch;
use crate::handoff::{Handed, Lending};
use crate::log::{Line, Log};
use crate::metrics::Metrics;
use crate::routes::{Routes, Target};
use answer::Outcome;

pub mod answer;

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
    /// Sees its packets, if anything does.
    pub observer: Option<Watch>,
    /// Hands requests to real servers, if there are any.
    pub lending: Option<Lending>,
}

/// Answers the request of `resolver`, until the client has acknowledged the answer.
pub async fn run(
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    resolver: RequestResolver<Connection, Bytes>,
) -> Result<(), StreamError> {
    let (request, stream) = resolver.resolve_request().await?;
    let begun = Instant::now();
    let (mut send, receive): (_, RequestStream<_, _>) =
        RequestStream::<BidiStream<Bytes>, Bytes>::split(stream);
    let mut line = Line::begin(&peer.client, &request);
    let method = request.method().clone();
    let body = RequestBody::new(receive, request.method(), request.headers());
    let mut request = request.map(|()| body);
    let target = shared.routes.target(&request);
    let stream = send.send_id().into_inner();
    if let (Some(Target::RealServers(pool)), Some(lending)) = (target, &peer.lending) {
        // A client that does not send its request's body to the end gets no answer.
        let Ok(handed) = lending.hand_over(pool, stream, &mut request).await else {
            return Ok(());
        };
        match handed {
            Handed::Over(given) => {
                if !given.whole {
                    send.stop_stream(Code::from(u64::from(RESET)));
                }
                // What was not reset, noq finishes as it drops it.
                drop(send);
                shared.metrics.answered(given.status);
                line.of(given).end(begun, &shared.log);
                return Ok(());
            }
            Handed::Kept => {}
        }
    }
    let response = shared.routes.answer(target, peer.client, request).await;
    line.status = response.status().as_u16();
    let size = answer::size(&method, &response);
    let unmetered = match &peer.observer {
        Some(observer) => {
            observer.meter().begin(stream, size);
            None
        }
        None => Some(meter::Response::new(shared.loads.clone(), size)),
    };
    let bytes = |length| {
        line.bytes += length;
        shared.metrics.body_bytes.fetch_add(length, Relaxed);
    };
    let sent = answer::send(&mut send, response, bytes).await;
    line.whole = matches!(sent, Ok(Outcome::Whole));
    drop(unmetered);
    shared.metrics.answered(line.status);
    line.end(begun, &shared.log);
    match sent? {
        Outcome::Whole => send.finish().await,
        Outcome::Broken => Ok(()),
    }
}
