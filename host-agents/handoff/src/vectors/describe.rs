// SPDX-License-Identifier: Apache-2.0
//! Messages as JSON.

use serde_json::{Value, json};

use super::hex;
use crate::grant::{Grant, Keys};
use crate::message::{Cookie, ToBalancer, ToServer};

/// Return type and fields of a message to a real server.
pub fn to_server(message: &ToServer) -> Value {
    match message {
        ToServer::Open {
            grant,
            cookie,
            min_size,
        } => json!({
            "type": "open",
            "grant": describe_grant(grant),
            "cookie": cookie.as_ref().map(describe_cookie),
            "min_size": min_size,
        }),
        ToServer::Request {
            stream,
            max_stream_data,
            http3,
        } => json!({
            "type": "request",
            "stream": stream,
            "max_stream_data": max_stream_data,
            "http3": hex(http3),
        }),
        ToServer::Feedback(frames) => json!({"type": "feedback", "frames": hex(frames)}),
        ToServer::Keys(keys) => json!({"type": "keys", "keys": describe_keys(keys)}),
        ToServer::Moved { client, server } => {
            json!({"type": "moved", "client": client, "server": server})
        }
        ToServer::ConnectionId(id) => json!({"type": "connection_id", "id": hex(id)}),
        ToServer::Stop => json!({"type": "stop"}),
        ToServer::Numbers(ranges) => {
            let ranges = ranges.iter();
            let ranges = ranges.map(
                |numbers| json!({"first": numbers.start, "count": numbers.end - numbers.start}),
            );
            json!({"type": "numbers", "ranges": ranges.collect::<Vec<_>>()})
        }
        ToServer::NumbersAhead {
            generation,
            numbers,
        } => json!({
            "type": "numbers_ahead",
            "generation": generation,
            "first": numbers.start,
            "count": numbers.end - numbers.start,
        }),
        ToServer::NumbersExpired(below) => json!({"type": "numbers_expired", "below": below}),
        ToServer::RequestPart { stream, http3 } => {
            json!({"type": "request_part", "stream": stream, "http3": hex(http3)})
        }
    }
}

/// Return type and fields of a message to a balancer.
pub fn to_balancer(message: &ToBalancer) -> Value {
    match message {
        ToBalancer::Accepted { stream } => json!({"type": "accepted", "stream": stream}),
        ToBalancer::Rejected { stream, reason } => {
            json!({"type": "rejected", "stream": stream, "reason": reason.name()})
        }
        ToBalancer::Sent {
            stream,
            final_size,
            status,
            bytes,
        } => json!({
            "type": "sent",
            "stream": stream,
            "final_size": final_size,
            "status": status,
            "bytes": bytes,
        }),
        ToBalancer::Acknowledged { stream } => json!({"type": "acknowledged", "stream": stream}),
        ToBalancer::Aborted {
            stream,
            code,
            final_size,
        } => {
            json!({"type": "aborted", "stream": stream, "code": code, "final_size": final_size})
        }
        ToBalancer::Blocked { credit } => json!({"type": "blocked", "credit": credit}),
        ToBalancer::Failed { code } => json!({"type": "failed", "code": code}),
        ToBalancer::Returned { next } => json!({"type": "returned", "next": next}),
        ToBalancer::NumbersNeeded { count, ahead } => {
            json!({"type": "numbers_needed", "count": count, "ahead": ahead})
        }
        ToBalancer::RoundTrips { shortest, limiting } => {
            json!({"type": "round_trips", "shortest": shortest, "limiting": limiting})
        }
        ToBalancer::NoAckReport {
            elapsed,
            next,
            has_probed,
        } => json!({
            "type": "no_ack_report",
            "elapsed_us": elapsed,
            "next": next,
            "has_probed": has_probed,
        }),
        ToBalancer::Progress {
            stream,
            acknowledged,
        } => json!({"type": "progress", "stream": stream, "acknowledged": acknowledged}),
        ToBalancer::Resumable { stream, response } => json!({
            "type": "resumable",
            "stream": stream,
            "from": response.from,
            "size": response.size,
            "tag": hex(&response.tag),
            "head": hex(&response.head),
        }),
    }
}

fn describe_grant(grant: &Grant) -> Value {
    json!({
        "path": grant.path,
        "first": grant.first,
        "connection_id": hex(&grant.connection_id),
        "suite": grant.suite,
        "header_secret": hex(&grant.header_secret),
        "keys": describe_keys(&grant.keys),
        "client_parameters": hex(&grant.client_parameters),
        "server": grant.server,
        "client": grant.client,
        "credit": grant.credit,
        "rtt_us": grant.rtt.as_micros() as u64,
    })
}

fn describe_keys(keys: &Keys) -> Value {
    json!({"generation": keys.generation, "secret": hex(&keys.secret)})
}

fn describe_cookie(cookie: &Cookie) -> Value {
    json!({
        "sid": cookie.sid,
        "prefix": format!("{:016x}", cookie.prefix),
        "epoch": cookie.epoch,
    })
}
