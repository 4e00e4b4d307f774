// SPDX-License-Identifier: Apache-2.0
//! Responses whose real server died. The balancer requests the rest from another server and sends it itself, from the
//! first byte that the client has not acknowledged.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use frontage_handoff::delegator::{RESET_PLACEHOLDER, StreamEnd};
use frontage_handoff::message::Resumable;
use frontage_http::body::{RequestBody, ResponseBody};
use frontage_quic::h3::{RawStreams, SendStream};
use h3::error::Code;
use h3::server::RequestStream;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use tokio::sync::watch;

use super::requests::{DelegatedResponse, Interruption, RequestDelegator};
use super::servers::{Pool, request_key};

/// Time in which a server must begin or continue its part of a response.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(5);
/// Condition fields of the client's request, which apply to the whole response only.
const CONDITIONS: [HeaderName; 6] = [
    header::RANGE,
    header::IF_RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
];

/// The client's end of an interrupted response.
pub struct ResponseStream<'a> {
    /// h3's stream.
    pub send: &'a mut RequestStream<SendStream<Bytes>, Bytes>,
    /// Streams of the connection on which data is written without frames.
    pub raw: &'a RawStreams,
    /// The client's address.
    pub client: SocketAddr,
}

/// Why the rest of a response cannot be sent.
enum Failure {
    /// No other server has the same representation.
    Server,
    /// The client has stopped the stream or is gone.
    Client,
}

impl RequestDelegator {
    /// Complete the response to `request` on `stream`, or reset the stream. Returns once the client has acknowledged
    /// everything.
    pub async fn resume(
        &self,
        pool: &Pool,
        request: &Request<()>,
        interruption: Interruption,
        stream: &mut ResponseStream<'_>,
    ) -> DelegatedResponse {
        let Interruption {
            server,
            mut response,
            resumable,
            acknowledged,
        } = interruption;
        let id = stream.send.send_id().into_inner();
        let counters = &self.servers.list()[server].counters;
        let mut rest = Rest {
            resumable: &resumable,
            at: acknowledged,
            tried: vec![server],
            pool,
            request,
        };
        let delegator = &self.client.delegator;
        // The stream can only be resumed once, so there must be a server for it.
        let is_closed = self.client.connection.close_reason().is_some();
        let body = match is_closed {
            true => None,
            false => self.open(&mut rest, stream.client).await,
        };
        let resumed = match body {
            Some(body) => delegator
                .resume_stream(id, acknowledged, rest.resumable.end())
                .map(|limit| (body, limit))
                .ok(),
            None => None,
        };
        let Some((body, limit)) = resumed else {
            counters.aborted.fetch_add(1, Relaxed);
            let end = StreamEnd::Reset {
                code: Code::H3_INTERNAL_ERROR.value(),
                final_size: None,
            };
            if let Err(error) = delegator.reclaim_stream(id, end) {
                self.close(&error);
            }
            stream
                .send
                .stop_stream(Code::from(u64::from(RESET_PLACEHOLDER)));
            return response;
        };
        stream.raw.insert(id);
        let sent = self.send_rest(&mut rest, body, limit, stream).await;
        stream.raw.remove(id);
        if sent.is_ok() {
            delegator.forget_resumed(id);
            counters.resumed.fetch_add(1, Relaxed);
            counters.skipped_bytes.fetch_add(acknowledged, Relaxed);
            response.status = if resumable.from == 0 { 200 } else { 206 };
            response.bytes = resumable.size;
            response.is_complete = true;
        } else {
            counters.aborted.fetch_add(1, Relaxed);
            stream.send.stop_stream(Code::H3_INTERNAL_ERROR);
        }
        response
    }

    /// Send the rest of the response, from further servers if one fails.
    async fn send_rest(
        &self,
        rest: &mut Rest<'_>,
        mut body: ResponseBody,
        mut limit: watch::Receiver<u64>,
        stream: &mut ResponseStream<'_>,
    ) -> Result<(), Failure> {
        let mut head = rest.head();
        send_within(rest, &mut head, &mut limit, stream).await?;
        loop {
            let frame = tokio::time::timeout(PROGRESS_TIMEOUT, body.frame()).await;
            match frame {
                Ok(Some(Ok(frame))) => {
                    if let Ok(mut data) = frame.into_data() {
                        data.truncate(
                            usize::try_from(rest.resumable.end() - rest.at).unwrap_or(usize::MAX),
                        );
                        send_within(rest, &mut data, &mut limit, stream).await?;
                    }
                }
                Ok(None) if rest.at == rest.resumable.end() => break,
                Ok(None | Some(Err(_))) | Err(_) => {
                    body = self
                        .open(rest, stream.client)
                        .await
                        .ok_or(Failure::Server)?;
                }
            }
        }
        stream.send.finish().await.map_err(|_| Failure::Client)
    }

    /// Request the rest of the body from a server that has not been tried.
    async fn open(&self, rest: &mut Rest<'_>, client: SocketAddr) -> Option<ResponseBody> {
        let Some(range) = rest.range() else {
            return Some(ResponseBody::default());
        };
        while let Some(index) = rest
            .pool
            .choose_other(request_key(rest.request.uri()), &rest.tried)
        {
            rest.tried.push(index);
            let server = &self.servers.list()[index];
            let request = rest.request_of(&range)?;
            let forwarded = self.servers.proxy.forward(&server.origin, client, request);
            let response = tokio::time::timeout(PROGRESS_TIMEOUT, forwarded).await;
            match response {
                Ok(response) if rest.matches(response.status(), response.headers()) => {
                    return Some(response.into_body());
                }
                _ => tracing::warn!(
                    "{}: cannot resume a response: trying another server",
                    server.name
                ),
            }
        }
        None
    }
}

/// Send `data`, as far as the client's limit of the stream permits at a time.
async fn send_within(
    rest: &mut Rest<'_>,
    data: &mut Bytes,
    limit: &mut watch::Receiver<u64>,
    stream: &mut ResponseStream<'_>,
) -> Result<(), Failure> {
    while !data.is_empty() {
        let at = rest.at;
        // Fails if the delegator has forgotten the stream.
        let current = limit.wait_for(|limit| *limit > at).await;
        let most = *current.map_err(|_| Failure::Client)? - at;
        let part = data.split_to(data.len().min(usize::try_from(most).unwrap_or(usize::MAX)));
        rest.at += part.len() as u64;
        stream
            .send
            .send_data(part)
            .await
            .map_err(|_| Failure::Client)?;
    }
    Ok(())
}

/// The part of a response that is to be sent.
struct Rest<'a> {
    resumable: &'a Resumable,
    /// Offset on the stream.
    at: u64,
    /// Indices of the servers that have failed.
    tried: Vec<usize>,
    pool: &'a Pool,
    request: &'a Request<()>,
}

impl Rest<'_> {
    /// Return what is left of the bytes before the body.
    fn head(&self) -> Bytes {
        let head = &self.resumable.head;
        head.slice(head.len().min(self.at as usize)..)
    }

    /// Return the first and last position of the missing part in the representation; `None` if only the end of the stream
    /// is missing.
    fn range(&self) -> Option<(u64, u64)> {
        let Resumable {
            from, size, head, ..
        } = self.resumable;
        let done = self.at.saturating_sub(head.len() as u64);
        (done < *size).then(|| (from + done, from + size - 1))
    }

    /// Return the client's request for another range, if the representation is still the same.
    fn request_of(&self, (first, last): &(u64, u64)) -> Option<Request<RequestBody>> {
        let mut request = self
            .request
            .clone()
            .map(|()| RequestBody::whole(Bytes::new()));
        let headers = request.headers_mut();
        for condition in CONDITIONS {
            headers.remove(condition);
        }
        let range = HeaderValue::from_str(&format!("bytes={first}-{last}")).ok()?;
        headers.insert(header::RANGE, range);
        let tag = HeaderValue::from_bytes(&self.resumable.tag).ok()?;
        headers.insert(header::IF_RANGE, tag);
        Some(request)
    }

    /// Return whether a response has the missing part of the same representation (RFC 9110, section 15.3.7).
    fn matches(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        let Some((first, last)) = self.range() else {
            return false;
        };
        let tag = headers.get(header::ETAG).map(HeaderValue::as_bytes);
        let range = headers.get(header::CONTENT_RANGE);
        let range = range.and_then(|range| range.to_str().ok());
        let expected = format!("bytes {first}-{last}/");
        status == StatusCode::PARTIAL_CONTENT
            && tag == Some(&self.resumable.tag)
            && range.is_some_and(|range| range.starts_with(&expected))
    }
}
