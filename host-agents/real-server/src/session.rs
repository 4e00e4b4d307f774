// SPDX-License-Identifier: Apache-2.0
//! One stream of a link: a delegation, and the requests on it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::{Bytes, BytesMut};
use frontage_handoff::client_address;
use frontage_handoff::delegate::{
    self, DelegatedConnection, DetourCompensation, NoAckReport, NumberRequest, Transport,
};
use frontage_handoff::grant::Grant;
use frontage_handoff::link::{Inbox, LinkError, Outbox};
use frontage_handoff::message::{Cookie, MAX_WHOLE_REQUEST, RejectReason, ToBalancer, ToServer};
use frontage_http::config::Congestion;
use frontage_quic::h3::StreamPair;
use frontage_quic::meter::Meter;
use frontage_quic::migration::LocalAddress;
use frontage_quic::pacing::InitialBurst;
use frontage_quic::socket::CookiePrefix;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use noq::ConnectionError;
use noq::congestion::{Bbr3Config, ControllerFactory, CubicConfig};
use tokio::sync::oneshot;

use crate::credit::Credit;
use crate::delegation::Delegation;
use crate::exchange::{self, Request, reject};
use crate::round_trips::RoundTrips;
use crate::shared::Shared;

/// QUIC's PROTOCOL_VIOLATION.
const PROTOCOL_VIOLATION: u64 = 0x0a;
/// QUIC's AEAD_LIMIT_REACHED.
const AEAD_LIMIT_REACHED: u64 = 0x0f;
/// UDP payload in octets that all clients accept (RFC 9000, section 14).
const MIN_UDP_PAYLOAD: u16 = 1200;

/// Serve a stream of a link to its end.
pub async fn serve(shared: Arc<Shared>, outbox: Outbox<ToBalancer>, mut inbox: Inbox<ToServer>) {
    let (grant, cookie, min_size) = match next(&shared, &mut inbox).await {
        Some(ToServer::Open {
            grant,
            cookie,
            min_size,
        }) => (grant, cookie, min_size),
        // No other message is possible without a grant.
        Some(_) => return shared.metrics.on_malformed("no_open"),
        None => return,
    };
    let Some(path) = shared.replay_guard.start(&grant) else {
        tracing::warn!(
            "balancer {}: grant of packet numbers that were granted before: stream closed",
            grant.server
        );
        return shared.metrics.on_malformed("replayed_open");
    };
    let meter = Arc::new(Meter::new(shared.metrics.loads.clone(), Arc::default()));
    match open(&shared, &grant, cookie.as_ref(), &meter).await {
        Ok((connection, cookie_prefix)) => {
            shared.metrics.grants.fetch_add(1, Relaxed);
            let delegation = Delegation {
                connection,
                path,
                meter,
                cookie_prefix,
                outbox,
                client: grant.client,
                min_size,
                credit: Credit::new(grant.credit),
            };
            run(&shared, &delegation, &mut inbox).await;
        }
        Err(error) => {
            shared.metrics.failed_grants.fetch_add(1, Relaxed);
            tracing::warn!("balancer {}: unusable grant: {error:#}", grant.server);
            shared.replay_guard.end(path, grant.first);
            reject_all(&shared, &outbox, &mut inbox, grant.first).await;
        }
    }
}

async fn open(
    shared: &Shared,
    grant: &Grant,
    cookie: Option<&Cookie>,
    meter: &Arc<Meter>,
) -> Result<(DelegatedConnection, Option<CookiePrefix>)> {
    let cookie_prefix = match (cookie, &shared.cookies) {
        (None, _) => None,
        (Some(_), None) => bail!("missing keys for the balancer's cookies: add [cookie]"),
        (Some(_), _) if grant.server.is_ipv4() => bail!("cookie over IPv4: not supported"),
        (Some(cookie), Some(cookies)) => {
            meter.set_local_address(cookie.epoch.map_or(LocalAddress::Vip, LocalAddress::Cookie));
            Some(cookies.cookie_prefix(cookie)?)
        }
    };
    let delegate = shared.delegates.get(grant.server, cookie_prefix.clone())?;
    let transport = Transport {
        congestion: controllers(shared.congestion, grant.rtt),
        mtu: MIN_UDP_PAYLOAD,
    };
    let connection = delegate.open(grant, &transport, meter.clone()).await?;
    Ok((connection, cookie_prefix))
}

/// Return the factory of controllers for a client at the round-trip time `proxied` from the balancer.
fn controllers(
    congestion: Congestion,
    proxied: Duration,
) -> Arc<dyn ControllerFactory + Send + Sync> {
    match congestion {
        Congestion::Cubic => {
            let cubic = InitialBurst::new(CubicConfig::default());
            Arc::new(DetourCompensation::new(cubic, proxied))
        }
        Congestion::Bbr => Arc::new(Bbr3Config::default()),
    }
}

/// Return the next message. A malformed one is counted and ends the stream.
async fn next(shared: &Shared, inbox: &mut Inbox<ToServer>) -> Option<ToServer> {
    match inbox.next().await {
        Ok(message) => message,
        Err(LinkError::Lost) => None,
        Err(LinkError::Malformed(error)) => {
            shared.metrics.on_malformed(error.name());
            tracing::warn!("malformed message of a balancer: {error}");
            None
        }
    }
}

/// Reject all requests until the balancer ends the stream.
async fn reject_all(
    shared: &Shared,
    outbox: &Outbox<ToBalancer>,
    inbox: &mut Inbox<ToServer>,
    next_number: u64,
) {
    while let Some(message) = next(shared, inbox).await {
        match message {
            ToServer::Request { stream, .. } => {
                reject(shared, outbox, stream, RejectReason::Path);
            }
            ToServer::Stop => {
                outbox.send(&ToBalancer::Returned { next: next_number });
                return;
            }
            _ => {}
        }
    }
}

/// Serve requests until the balancer, the client or the path is gone. Nothing is sent on the path afterwards.
async fn run(shared: &Shared, delegation: &Delegation, inbox: &mut Inbox<ToServer>) {
    let (connection, outbox) = (&delegation.connection, &delegation.outbox);
    let mut parts = Parts::default();
    let mut round_trips = RoundTrips::default();
    let mut pending: HashMap<u64, oneshot::Sender<StreamPair>> = HashMap::new();
    // All exchanges run in this task, so that what they write in one turn leaves in one batch.
    let mut exchanges = FuturesUnordered::new();
    loop {
        tokio::select! {
            message = next(shared, inbox) => match message {
                Some(ToServer::RequestPart { stream, http3 }) => {
                    if !parts.add(stream, &http3) {
                        tracing::warn!("client {}: request too long", delegation.client);
                        return shared.metrics.on_malformed("request_length");
                    }
                }
                Some(ToServer::Request { stream, .. }) if *shared.ending.borrow() => {
                    parts.0.remove(&stream);
                    reject(shared, outbox, stream, RejectReason::Busy);
                }
                Some(ToServer::Request { stream, max_stream_data, http3 }) => {
                    let (sender, opened) = oneshot::channel();
                    pending.insert(stream, sender);
                    let http3 = parts.complete(stream, http3);
                    let request = Request { stream, max_stream_data, http3, opened };
                    exchanges.push(exchange::run(shared, delegation, request));
                }
                Some(ToServer::Stop) => {
                    let next = connection.revoke();
                    shared.replay_guard.end(delegation.path, next);
                    outbox.send(&ToBalancer::Returned { next });
                    return;
                }
                Some(ToServer::Moved { client, server }) => {
                    if !on_client_moved(delegation, client, server) {
                        shared.metrics.lost_clients.fetch_add(1, Relaxed);
                        tracing::warn!(
                            "client {client}: missing key for the cookie address {server}: delegation ended");
                        return;
                    }
                }
                Some(ToServer::Open { .. }) => {
                    tracing::warn!("client {}: second grant on one stream", delegation.client);
                    return shared.metrics.on_malformed("second_open");
                }
                Some(message) => {
                    if let Err(error) = on_message(connection, outbox, message) {
                        shared.metrics.invalid_feedback.fetch_add(1, Relaxed);
                        tracing::warn!("client {}: {error}", delegation.client);
                        outbox.send(&ToBalancer::Failed { code: PROTOCOL_VIOLATION });
                        return;
                    }
                    report_round_trips(connection, outbox, &mut round_trips);
                }
                None => return,
            },
            opened = connection.accept() => match opened {
                Ok((stream, both)) => if let Some(sender) = pending.remove(&stream) {
                    // Fails if the exchange has ended.
                    let _ = sender.send(both);
                },
                Err(error) => {
                    if let Some(code) = violation(&error) {
                        outbox.send(&ToBalancer::Failed { code });
                    }
                    return;
                }
            },
            NumberRequest { count, ahead } = connection.numbers_needed() => {
                shared.metrics.number_requests.fetch_add(1, Relaxed);
                outbox.send(&ToBalancer::NumbersNeeded { count, ahead });
            }
            report = connection.no_ack() => {
                let NoAckReport { elapsed, next, has_probed } = report;
                let elapsed = elapsed.as_micros() as u64;
                outbox.send(&ToBalancer::NoAckReport { elapsed, next, has_probed });
            }
            () = connection.keys_exhausted() => {
                outbox.send(&ToBalancer::Failed { code: AEAD_LIMIT_REACHED });
                return;
            }
            // The access log has the outcome.
            Some(()) = exchanges.next() => report_round_trips(connection, outbox, &mut round_trips),
        }
    }
}

/// Send the balancer what is new about the round trips of a client with a single path.
fn report_round_trips(
    connection: &DelegatedConnection,
    outbox: &Outbox<ToBalancer>,
    round_trips: &mut RoundTrips,
) {
    if connection.shares_numbers()
        && let Some(report) = round_trips.sample(&connection.connection, Instant::now())
    {
        outbox.send(&report);
    }
}

/// Beginnings of long requests, by stream.
#[derive(Default)]
struct Parts(HashMap<u64, BytesMut>);

impl Parts {
    /// Add a part. Returns false if the request is too long.
    fn add(&mut self, stream: u64, http3: &[u8]) -> bool {
        let request = self.0.entry(stream).or_default();
        request.extend_from_slice(http3);
        request.len() <= MAX_WHOLE_REQUEST
    }

    /// Return the whole request, which ends with `rest`.
    fn complete(&mut self, stream: u64, rest: Bytes) -> Bytes {
        match self.0.remove(&stream) {
            None => rest,
            Some(mut request) => {
                request.extend_from_slice(&rest);
                request.freeze()
            }
        }
    }
}

fn on_message(
    connection: &DelegatedConnection,
    outbox: &Outbox<ToBalancer>,
    message: ToServer,
) -> Result<(), delegate::Error> {
    match message {
        ToServer::Feedback(frames) => {
            connection.on_feedback(&frames)?;
            for (stream, acknowledged) in connection.take_progress() {
                outbox.send(&ToBalancer::Progress {
                    stream,
                    acknowledged,
                });
            }
            Ok(())
        }
        ToServer::Keys(keys) => connection.set_keys(&keys),
        ToServer::ConnectionId(id) => connection.set_connection_id(id),
        ToServer::Numbers(numbers) => connection.on_numbers(&numbers),
        ToServer::NumbersAhead {
            generation,
            numbers,
        } => connection.on_numbers_ahead(generation, numbers),
        ToServer::NumbersExpired(below) => {
            connection.on_numbers_expired(below);
            Ok(())
        }
        ToServer::Open { .. }
        | ToServer::Request { .. }
        | ToServer::RequestPart { .. }
        | ToServer::Moved { .. }
        | ToServer::Stop => {
            unreachable!("handled by the caller")
        }
    }
}

/// Handle a move of the client. Returns false if this server cannot send from `server`.
fn on_client_moved(delegation: &Delegation, client: SocketAddr, server: SocketAddr) -> bool {
    if let Some(cookie_prefix) = &delegation.cookie_prefix {
        let Some(place) = client_address::decode(cookie_prefix, server.ip()) else {
            return false;
        };
        delegation.meter.set_local_address(place);
    }
    // Fails if noq's endpoint is gone, which `run` then detects.
    let _ = delegation.connection.on_client_moved(client, server);
    true
}

/// Return the transport error code if noq detected a protocol violation of the client.
fn violation(error: &ConnectionError) -> Option<u64> {
    match error {
        ConnectionError::TransportError(error) => Some(error.code.into()),
        _ => None,
    }
}
