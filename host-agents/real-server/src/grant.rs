//! One stream of a balancer's: a path of a client's connection, and what is to be sent on it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Result, bail};
use frontage_handoff::borrow::{self, Borrowed, Transport};
use frontage_handoff::grant::Grant;
use frontage_handoff::link::{Broken, Inbox, Outbox};
use frontage_handoff::message::{Cookie, Reason, ToBalancer, ToServer};
use frontage_handoff::place::place_of;
use frontage_quic::h3::StreamPair;
use frontage_quic::meter::Meter;
use frontage_quic::migration::LocalAddress;
use frontage_quic::socket::CookiePrefix;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use noq::ConnectionError;
use tokio::sync::oneshot;

use crate::credit::Credit;
use crate::exchange::{self, Asked, Loan, refuse};
use crate::server::Shared;

/// QUIC's PROTOCOL_VIOLATION.
const PROTOCOL_VIOLATION: u64 = 0x0a;
/// QUIC's AEAD_LIMIT_REACHED.
const AEAD_LIMIT_REACHED: u64 = 0x0f;
/// Octets of UDP payload that any client takes (RFC 9000, section 14).
const MTU: u16 = 1200;

/// Serves a balancer's stream to its end.
pub async fn serve(shared: Arc<Shared>, outbox: Outbox<ToBalancer>, mut inbox: Inbox<ToServer>) {
    let (grant, cookie, below) = match next(&shared, &mut inbox).await {
        Some(ToServer::Open {
            grant,
            cookie,
            below,
        }) => (grant, cookie, below),
        // Without a path nothing can be done, and nothing was promised.
        Some(_) => return shared.metrics.malformed("no_open"),
        None => return,
    };
    let Some(id) = shared.granted.take(&grant) else {
        tracing::warn!("rejected a grant for {}: replayed", grant.server);
        return shared.metrics.malformed("replayed_open");
    };
    let meter = Arc::new(Meter::new(shared.metrics.loads.clone(), Arc::default()));
    match open(&shared, &grant, cookie.as_ref(), &meter).await {
        Ok((borrowed, cookie_prefix)) => {
            shared.metrics.grants.fetch_add(1, Relaxed);
            let loan = Loan {
                borrowed,
                id,
                meter,
                cookie_prefix,
                outbox,
                client: grant.client,
                below,
                credit: Credit::new(grant.credit),
            };
            lend(&shared, &loan, &mut inbox).await;
        }
        Err(error) => {
            shared.metrics.failed_grants.fetch_add(1, Relaxed);
            tracing::warn!("rejected a grant for {}: {error:#}", grant.server);
            shared.granted.give_back(id, grant.first);
            refuse_all(&shared, &outbox, &mut inbox, grant.first).await;
        }
    }
}

async fn open(
    shared: &Shared,
    grant: &Grant,
    cookie: Option<&Cookie>,
    meter: &Arc<Meter>,
) -> Result<(Borrowed, Option<CookiePrefix>)> {
    let cookie_prefix = match (cookie, &shared.cookies) {
        (None, _) => None,
        (Some(_), None) => bail!("it has no keys for the balancer's cookies"),
        (Some(_), _) if grant.server.is_ipv4() => bail!("there are no cookies over IPv4"),
        (Some(cookie), Some(cookies)) => {
            meter.set_local_address(cookie.epoch.map_or(LocalAddress::Vip, LocalAddress::Cookie));
            Some(cookies.cookie_prefix(cookie)?)
        }
    };
    let borrower = shared.sources.of(grant.server, cookie_prefix.clone())?;
    let transport = Transport {
        congestion: shared.congestion.clone(),
        mtu: MTU,
    };
    let borrowed = borrower.open(grant, &transport, meter.clone()).await?;
    Ok((borrowed, cookie_prefix))
}

/// The next message. What is none is counted, and ends the stream.
async fn next(shared: &Shared, inbox: &mut Inbox<ToServer>) -> Option<ToServer> {
    match inbox.next().await {
        Ok(message) => message,
        Err(Broken::Lost) => None,
        Err(Broken::Malformed(error)) => {
            shared.metrics.malformed(error.name());
            tracing::warn!("malformed message from a balancer: {error}");
            None
        }
    }
}

/// Until the balancer ends it.
async fn refuse_all(
    shared: &Shared,
    outbox: &Outbox<ToBalancer>,
    inbox: &mut Inbox<ToServer>,
    next_number: u64,
) {
    while let Some(message) = next(shared, inbox).await {
        match message {
            ToServer::Request { stream, .. } => refuse(shared, outbox, stream, Reason::Path),
            ToServer::Stop => {
                outbox.send(&ToBalancer::Returned { next: next_number });
                return;
            }
            _ => {}
        }
    }
}

/// Until the balancer, the client or the path is gone. Then nothing is sent on it any more.
async fn lend(shared: &Shared, loan: &Loan, inbox: &mut Inbox<ToServer>) {
    let mut waiting: HashMap<u64, oneshot::Sender<StreamPair>> = HashMap::new();
    // In this task, not in one each: what they write in one turn leaves in one batch.
    let mut exchanges = FuturesUnordered::new();
    loop {
        tokio::select! {
            message = next(shared, inbox) => match message {
                Some(ToServer::Request { stream, .. }) if *shared.ending.borrow() => {
                    refuse(shared, &loan.outbox, stream, Reason::Busy);
                }
                Some(ToServer::Request { stream, max_stream_data, http3 }) => {
                    let (open, opened) = oneshot::channel();
                    waiting.insert(stream, open);
                    let asked = Asked { stream, max_stream_data, http3, opened };
                    exchanges.push(exchange::run(shared, loan, asked));
                }
                Some(ToServer::Stop) => {
                    let next = loan.borrowed.revoke();
                    shared.granted.give_back(loan.id, next);
                    loan.outbox.send(&ToBalancer::Returned { next });
                    return;
                }
                Some(ToServer::Moved { client, server }) => if !moved(loan, client, server) {
                    shared.metrics.lost_clients.fetch_add(1, Relaxed);
                    tracing::warn!("lost client {client}: it moved to a cookie address of an unknown key");
                    return;
                },
                Some(ToServer::Open { .. }) => {
                    tracing::warn!("client {}: second grant on one stream", loan.client);
                    return shared.metrics.malformed("second_open");
                }
                Some(message) => if let Err(error) = hear(loan, message) {
                    shared.metrics.bad_feedback.fetch_add(1, Relaxed);
                    tracing::warn!("client {}: invalid feedback: {error}", loan.client);
                    loan.outbox.send(&ToBalancer::Failed { code: PROTOCOL_VIOLATION });
                    return;
                },
                None => return,
            },
            opened = loan.borrowed.accept() => match opened {
                Ok((stream, both)) => if let Some(open) = waiting.remove(&stream) {
                    // The exchange waits for it.
                    let _ = open.send(both);
                },
                Err(error) => {
                    if let Some(code) = violation(&error) {
                        loan.outbox.send(&ToBalancer::Failed { code });
                    }
                    return;
                }
            },
            count = loan.borrowed.numbers_wanted() => {
                loan.outbox.send(&ToBalancer::Wants { count });
            }
            silent = loan.borrowed.silent() => {
                let (silence, next) = (silent.silence.as_micros() as u64, silent.next);
                loan.outbox.send(&ToBalancer::Silent { silence, next });
            }
            () = loan.borrowed.exhausted() => {
                loan.outbox.send(&ToBalancer::Failed { code: AEAD_LIMIT_REACHED });
                return;
            }
            // What became of it stands in the log.
            Some(()) = exchanges.next() => {}
        }
    }
}

fn hear(loan: &Loan, message: ToServer) -> Result<(), borrow::Error> {
    let borrowed = &loan.borrowed;
    match message {
        ToServer::Feedback(frames) => borrowed.feedback(&frames),
        ToServer::Keys(keys) => borrowed.rekey(&keys),
        ToServer::ConnectionId(id) => borrowed.connection_id(id),
        ToServer::Numbers(numbers) => borrowed.numbers(numbers),
        ToServer::Open { .. }
        | ToServer::Request { .. }
        | ToServer::Moved { .. }
        | ToServer::Stop => {
            unreachable!("the caller sees to these")
        }
    }
}

/// The client is elsewhere. Whether it can be answered there.
fn moved(loan: &Loan, client: SocketAddr, server: SocketAddr) -> bool {
    if let Some(cookie_prefix) = &loan.cookie_prefix {
        let Some(place) = place_of(cookie_prefix, server.ip()) else {
            return false;
        };
        loan.meter.set_local_address(place);
    }
    // An error means that noq is gone, as the next turn finds.
    let _ = loan.borrowed.moved(client, server);
    true
}

/// The transport's code if noq found the client to violate the protocol.
fn violation(error: &ConnectionError) -> Option<u64> {
    match error {
        ConnectionError::TransportError(error) => Some(error.code.into()),
        _ => None,
    }
}
