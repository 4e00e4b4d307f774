//! One request and its answer.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use frontage_cclb7_quic::body::{RequestBody, ResponseBody};
use frontage_cclb7_quic::exchange::answer::{self, Outcome};
use frontage_cclb7_quic::log::Line;
use frontage_handoff::borrow::Borrowed;
use frontage_handoff::http3;
use frontage_handoff::link::Outbox;
use frontage_handoff::message::{Reason, ToBalancer};
use frontage_quic::h3::StreamPair;
use frontage_quic::meter::Meter;
use frontage_quic::socket::CookiePrefix;
use h3::error::Code;
use http::Response;
use noq::WriteError;
use tokio::sync::oneshot;

use crate::credit::{Credit, Need};
use crate::granted::Id;
use crate::server::Shared;
use crate::writer::Writer;

/// A path of a client's connection, while it is borrowed.
pub struct Loan {
    /// What sends.
    pub borrowed: Borrowed,
    /// Its path.
    pub id: Id,
    /// Takes the sizes of answers.
    pub meter: std::sync::Arc<Meter>,
    /// What the sources of packets are made of, if of cookies.
    pub cookie_prefix: Option<CookiePrefix>,
    /// To the balancer.
    pub outbox: Outbox<ToBalancer>,
    /// Where the client was at first.
    pub client: SocketAddr,
    /// Answers of fewer bytes are the balancer's.
    pub below: u64,
    /// What of the client's limit it has.
    pub credit: Credit,
}

/// A request that came.
pub struct Asked {
    /// Its stream.
    pub stream: u64,
    /// What the client takes of it, if it has said so.
    pub max_stream_data: Option<u64>,
    /// The request.
    pub http3: Bytes,
    /// The stream, once noq has opened it.
    pub opened: oneshot::Receiver<StreamPair>,
}

/// Answers a request, or leaves it to the balancer; ready once the client has acknowledged the answer.
pub async fn run(shared: &Shared, loan: &Loan, asked: Asked) {
    let begun = Instant::now();
    let Ok(request) = http3::read_request(asked.http3.clone()) else {
        return refuse(shared, &loan.outbox, asked.stream, Reason::Request);
    };
    let mut line = Line::begin(&loan.client, &request);
    let method = request.method().clone();
    let target = shared.routes.target(&request);
    let request = request.map(RequestBody::whole);
    let response = shared.routes.answer(target, loan.client, request).await;
    let size = answer::size(&method, &response);
    if size.is_some_and(|size| size < loan.below) {
        return refuse(shared, &loan.outbox, asked.stream, Reason::Small);
    }
    let requested = loan
        .borrowed
        .request(asked.stream, asked.max_stream_data, &[]);
    if requested.is_err() {
        return refuse(shared, &loan.outbox, asked.stream, Reason::Path);
    }
    let stream = asked.stream;
    loan.outbox.send(&ToBalancer::Accepted { stream });
    let need = Need::new(&loan.credit, &loan.outbox, size);
    line.status = response.status().as_u16();
    loan.meter.begin(stream, size);
    shared.metrics.answered(line.status);
    // It is not, once the connection is lost.
    if let Ok((send, _receive)) = asked.opened.await {
        let mut writer = Writer::new(send, need);
        let bytes = |length| {
            line.bytes += length;
            shared.metrics.body_bytes.fetch_add(length, Relaxed);
        };
        let sent = send_all(&mut writer, response, bytes).await;
        let final_size = writer.written;
        let told = match sent {
            Ok(()) => {
                loan.outbox.send(&ToBalancer::Sent {
                    stream,
                    final_size,
                    status: line.status,
                    bytes: line.bytes,
                });
                writer.acknowledged().await.map_err(code)
            }
            Err(code) => Err(code),
        };
        line.whole = told.is_ok();
        match told {
            Ok(()) => _ = loan.outbox.send(&ToBalancer::Done { stream }),
            Err(code) => {
                shared.metrics.broken.fetch_add(1, Relaxed);
                loan.borrowed.release(stream);
                loan.outbox.send(&ToBalancer::Broken {
                    stream,
                    code,
                    final_size,
                });
            }
        }
    }
    loan.borrowed.release(stream);
    line.end(begun, &shared.log);
}

/// Writes `response` to its end; the code with which the stream is to be reset if that fails.
async fn send_all(
    writer: &mut Writer<'_>,
    response: Response<ResponseBody>,
    bytes: impl FnMut(u64),
) -> Result<(), u64> {
    match answer::send(writer, response, bytes).await {
        Ok(Outcome::Whole) => {
            writer.finish();
            Ok(())
        }
        Ok(Outcome::Broken) => Err(Code::H3_INTERNAL_ERROR.value()),
        Err(error) => Err(code(error)),
    }
}

/// A stream that the client stops is reset with its code (RFC 9000, section 3.5).
fn code(error: WriteError) -> u64 {
    match error {
        WriteError::Stopped(code) => code.into(),
        _ => Code::H3_INTERNAL_ERROR.value(),
    }
}

/// Leaves a request to the balancer.
pub fn refuse(shared: &Shared, outbox: &Outbox<ToBalancer>, stream: u64, reason: Reason) {
    shared.metrics.refused(reason);
    outbox.send(&ToBalancer::Refused { stream, reason });
}
