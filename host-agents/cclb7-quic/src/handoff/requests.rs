// SPDX-License-Identifier: Apache-2.0
//! Delegation of one client connection's requests.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use frontage_handoff::delegator::{self, StreamEnd};
use frontage_handoff::http3;
use frontage_handoff::message::{
    MAX_REQUEST, MAX_WHOLE_REQUEST, RejectReason, Resumable, ToServer,
};
use frontage_quic::min_rtt::min_rtt;
use h3::error::Code;
use http::Request;
use noq::{PathId, VarInt};
use tokio::sync::mpsc::UnboundedReceiver;

use super::client::Client;
use super::config::SinglePath;
use super::counters::LocalReason;
use super::servers::{Pool, RealServer, RealServers, request_key};
use super::session::Session;
use super::sessions::Sessions;
use super::streams::StreamUpdate;
use crate::body::{Error, RequestBody};

/// The response of a real server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelegatedResponse {
    /// Name of the real server.
    pub server: String,
    /// HTTP status; 0 if unknown.
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
    /// True if the client has received the whole response.
    pub is_complete: bool,
}

impl DelegatedResponse {
    /// Return the response of `server` before anything is known about it.
    fn new(server: &RealServer) -> Self {
        Self {
            server: server.name.clone(),
            status: 0,
            bytes: 0,
            is_complete: false,
        }
    }
}

/// A response whose real server died after it had begun to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// Index of the real server.
    pub(super) server: usize,
    /// Status and size of the response, as far as known.
    pub(super) response: DelegatedResponse,
    pub(super) resumable: Resumable,
    /// Bytes at the beginning of the stream that the client has acknowledged.
    pub(super) acknowledged: u64,
}

impl Interruption {
    /// Return how many bytes of the stream the client has not acknowledged.
    pub fn remaining(&self) -> u64 {
        self.resumable.end().saturating_sub(self.acknowledged)
    }
}

/// Outcome of an attempt to delegate a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A real server has handled the request. The caller must finish noq's half of the stream or, if the response is
    /// incomplete, reset it with [`delegator::RESET_PLACEHOLDER`].
    Delegated(DelegatedResponse),
    /// The real server has died in mid-response. The caller must pass this to [`RequestDelegator::resume`].
    Interrupted(Interruption),
    /// Nothing was sent, so the balancer must respond itself.
    Local,
}

/// Delegates the requests of one client connection.
pub struct RequestDelegator {
    pub(super) client: Client,
    pub(super) servers: Arc<RealServers>,
    sessions: Sessions,
}

impl RequestDelegator {
    /// Create the delegator of `client`'s requests.
    pub fn new(client: Client, servers: Arc<RealServers>) -> Self {
        Self {
            sessions: Sessions::new(client.clone(), servers.clone()),
            client,
            servers,
        }
    }

    /// Update the connection's keys while no packets are in flight that would be lost by the update.
    pub async fn update_keys(&self) {
        let client = &self.client;
        client.delegator.update_keys(&client.connection).await;
    }

    /// Have a real server of `pool` respond to `request` on `stream`. The request may lack only a part of its body.
    ///
    /// # Errors
    /// If the client does not send the whole body.
    pub async fn delegate(
        &self,
        pool: &Pool,
        stream: u64,
        request: &mut Request<RequestBody>,
    ) -> Result<Outcome, Error> {
        let max_body = self.servers.max_request_body;
        let body = request.body_mut().collect_up_to(max_body).await?;
        let http3 = body.map(|body| http3::request(request, &body));
        let delegated = match http3.filter(|http3| http3.len() <= MAX_WHOLE_REQUEST) {
            Some(http3) => {
                let key = request_key(request.uri());
                self.delegate_encoded(pool, stream, key, http3).await
            }
            None => Err(LocalReason::Large),
        };
        Ok(match delegated {
            Ok(outcome) => outcome,
            Err(reason) => {
                self.servers.on_local(reason);
                Outcome::Local
            }
        })
    }

    async fn delegate_encoded(
        &self,
        pool: &Pool,
        stream: u64,
        key: u64,
        mut http3: Bytes,
    ) -> Result<Outcome, LocalReason> {
        let delegator = &self.client.delegator;
        if self.servers.single_path == SinglePath::Proxy && !delegator.is_multipath() {
            return Err(LocalReason::SinglePath);
        }
        let session = self.sessions.choose(pool, key).await;
        let session = session.ok_or(LocalReason::Unavailable)?;
        if self.is_slower(&session) {
            return Err(LocalReason::Slower);
        }
        let max_stream_data = delegator
            .delegate_stream(session.delegation, stream)
            .map_err(|_| LocalReason::Unavailable)?;
        let mut messages = Vec::new();
        while http3.len() > MAX_REQUEST {
            let http3 = http3.split_to(MAX_REQUEST);
            messages.push(ToServer::RequestPart { stream, http3 });
        }
        messages.push(ToServer::Request {
            stream,
            max_stream_data,
            http3,
        });
        session.send_numbers_ahead(&self.client);
        let server = &self.servers.list()[session.server];
        let Some(updates) = session.request(stream, &messages) else {
            return self.reject(server, stream, LocalReason::Unavailable);
        };
        let load = server.add_load();
        let response = self.follow(session.server, stream, updates).await;
        session.forget(stream);
        drop(load);
        response
    }

    /// Return whether a proxied response would be faster than one of `session`.
    fn is_slower(&self, session: &Session) -> bool {
        let client = min_rtt(&self.client.connection, PathId::ZERO);
        let link = self.servers.list()[session.server].link.min_rtt();
        self.servers.single_path == SinglePath::Fastest
            && client
                .zip(link)
                .is_some_and(|(client, link)| session.is_slower(client, link))
    }

    /// Return a stream to the balancer, on which nothing was or will be sent.
    fn reject(
        &self,
        server: &RealServer,
        stream: u64,
        reason: LocalReason,
    ) -> Result<Outcome, LocalReason> {
        match self.client.delegator.reject_stream(stream) {
            Ok(()) => Err(reason),
            Err(error) => {
                self.close(&error);
                Ok(Outcome::Delegated(DelegatedResponse::new(server)))
            }
        }
    }

    /// Follow the updates of a stream to its end.
    async fn follow(
        &self,
        index: usize,
        stream: u64,
        mut updates: UnboundedReceiver<StreamUpdate>,
    ) -> Result<Outcome, LocalReason> {
        let server = &self.servers.list()[index];
        let counters = &server.counters;
        let mut response = DelegatedResponse::new(server);
        let (mut size, mut resumable, mut acknowledged) = (0, None, 0);
        let mut is_accepted = false;
        let end = loop {
            match updates.recv().await {
                Some(StreamUpdate::Rejected(reason)) => {
                    count_rejection(server, reason);
                    return self.reject(server, stream, LocalReason::Rejected);
                }
                Some(StreamUpdate::Accepted) => is_accepted = true,
                Some(StreamUpdate::Resumable(response)) => resumable = Some(response),
                Some(StreamUpdate::Progress(bytes)) => acknowledged = acknowledged.max(bytes),
                Some(StreamUpdate::Sent {
                    final_size,
                    status,
                    bytes,
                }) => {
                    size = final_size;
                    (response.status, response.bytes) = (status, bytes);
                    counters.body_bytes.fetch_add(bytes, Relaxed);
                }
                Some(StreamUpdate::Acknowledged) => {
                    counters.completed.fetch_add(1, Relaxed);
                    response.is_complete = true;
                    break StreamEnd::Complete { final_size: size };
                }
                Some(StreamUpdate::Aborted { code, final_size }) => {
                    counters.aborted.fetch_add(1, Relaxed);
                    break StreamEnd::Reset {
                        code,
                        final_size: Some(final_size),
                    };
                }
                None => {
                    if let Some(resumable) = resumable.filter(|_| self.servers.resume) {
                        return Ok(Outcome::Interrupted(Interruption {
                            server: index,
                            response,
                            resumable,
                            acknowledged,
                        }));
                    }
                    if !is_accepted {
                        counters.unaccepted.fetch_add(1, Relaxed);
                    }
                    counters.aborted.fetch_add(1, Relaxed);
                    break StreamEnd::Reset {
                        code: Code::H3_INTERNAL_ERROR.value(),
                        final_size: None,
                    };
                }
            }
        };
        if let Err(error) = self.client.delegator.reclaim_stream(stream, end) {
            self.close(&error);
        }
        Ok(Outcome::Delegated(response))
    }

    /// Close the connection because a stream cannot be ended as the real server says. The client would wait for its end
    /// for ever.
    pub(super) fn close(&self, error: &delegator::Error) {
        tracing::warn!("hand-off: {error}");
        let code = VarInt::from_u64(Code::H3_INTERNAL_ERROR.value()).expect("valid varint");
        self.client
            .connection
            .close(code, b"a stream cannot be ended");
    }
}

fn count_rejection(server: &RealServer, reason: RejectReason) {
    let reasons = RejectReason::ALL.iter().zip(&server.counters.rejected);
    for (_, counter) in reasons.filter(|(known, _)| **known == reason) {
        counter.fetch_add(1, Relaxed);
    }
}
