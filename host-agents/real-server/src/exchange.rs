// SPDX-License-Identifier: Apache-2.0
//! One request and its response.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use frontage_handoff::http3;
use frontage_handoff::link::Outbox;
use frontage_handoff::message::{RejectReason, ToBalancer};
use frontage_http::access_log::Line;
use frontage_http::body::{RequestBody, ResponseBody};
use frontage_http::priority::Priority;
use frontage_http::response::{self, Outcome};
use frontage_quic::h3::StreamPair;
use h3::error::Code;
use http::Response;
use noq::WriteError;
use tokio::sync::oneshot;

use crate::credit::CreditNeed;
use crate::delegation::Delegation;
use crate::resumable;
use crate::shared::Shared;
use crate::writer::Writer;

/// A delegated request.
pub struct Request {
    /// Stream id.
    pub stream: u64,
    /// The client's MAX_STREAM_DATA, if it sent one.
    pub max_stream_data: Option<u64>,
    /// The request as HTTP/3 frames.
    pub http3: Bytes,
    /// The stream, once noq has opened it.
    pub opened: oneshot::Receiver<StreamPair>,
}

/// Respond to a request or reject it. Completes once the client has acknowledged the response.
pub async fn run(shared: &Shared, delegation: &Delegation, delegated: Request) {
    let start = Instant::now();
    let (stream, outbox) = (delegated.stream, &delegation.outbox);
    let connection = &delegation.connection;
    let Ok(request) = http3::read_request(delegated.http3.clone()) else {
        return reject(shared, outbox, stream, RejectReason::Request);
    };
    let mut line = Line::new(&shared.log, &delegation.client, &request);
    let method = request.method().clone();
    let target = shared.routes.target(&request);
    let requested = Priority::requested(request.headers());
    let request = request.map(RequestBody::whole);
    let response = shared
        .routes
        .respond(target, delegation.client, request)
        .await;
    let size = response::body_size(&method, &response);
    if size.is_some_and(|size| size < delegation.min_size) {
        return reject(shared, outbox, stream, RejectReason::Small);
    }
    let opened = connection.request(stream, delegated.max_stream_data, &[]);
    if opened.is_err() {
        return reject(shared, outbox, stream, RejectReason::Path);
    }
    outbox.send(&ToBalancer::Accepted { stream });
    let need = CreditNeed::new(&delegation.credit, outbox, size);
    let resumable = resumable::describe(&method, &response, size);
    line.status = response.status().as_u16();
    let priority = requested.merged(response.headers());
    delegation
        .meter
        .begin_urgent(stream, size, priority.urgency);
    shared.metrics.on_response(line.status);
    // Fails if the connection is lost.
    if let Ok((send, _receive)) = delegated.opened.await {
        // Fails if the client has stopped the stream.
        let _ = send.set_priority(priority.send_order(stream, size));
        let mut writer = Writer::new(send, need, (stream, outbox), resumable);
        let on_sent = |length| {
            line.bytes += length;
            shared.metrics.body_bytes.fetch_add(length, Relaxed);
        };
        let sent = send_all(&mut writer, response, on_sent).await;
        let final_size = writer.written;
        let result = match sent {
            Ok(()) => {
                outbox.send(&ToBalancer::Sent {
                    stream,
                    final_size,
                    status: line.status,
                    bytes: line.bytes,
                });
                writer.acknowledged().await.map_err(error_code)
            }
            Err(code) => Err(code),
        };
        line.whole = result.is_ok();
        match result {
            Ok(()) => _ = outbox.send(&ToBalancer::Acknowledged { stream }),
            Err(code) => {
                shared.metrics.aborted.fetch_add(1, Relaxed);
                connection.release(stream);
                outbox.send(&ToBalancer::Aborted {
                    stream,
                    code,
                    final_size,
                });
            }
        }
    }
    connection.release(stream);
    line.finish(start, &shared.log);
}

/// Write the whole response.
///
/// # Errors
/// With the application error code for the stream.
async fn send_all(
    writer: &mut Writer<'_>,
    response: Response<ResponseBody>,
    on_sent: impl FnMut(u64),
) -> Result<(), u64> {
    match response::send(writer, response, on_sent).await {
        Ok(Outcome::Complete) if writer.is_complete() => {
            writer.finish();
            Ok(())
        }
        Ok(_) => Err(Code::H3_INTERNAL_ERROR.value()),
        Err(error) => Err(error_code(error)),
    }
}

/// Return the error code for a stream. One that the client stopped is reset with the client's code (RFC 9000, section 3.5).
fn error_code(error: WriteError) -> u64 {
    match error {
        WriteError::Stopped(code) => code.into(),
        _ => Code::H3_INTERNAL_ERROR.value(),
    }
}

/// Return a request to the balancer.
pub fn reject(shared: &Shared, outbox: &Outbox<ToBalancer>, stream: u64, reason: RejectReason) {
    shared.metrics.on_rejected(reason);
    outbox.send(&ToBalancer::Rejected { stream, reason });
}
