// SPDX-License-Identifier: Apache-2.0
//! The HTTP API for the controller and the replicas.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use frontage_daemon::metrics::{CONTENT_TYPE as OPEN_METRICS, Registry, encode};
use serde::Deserialize;

use crate::control::{ControlPlane, UpdateError};
use crate::message::{FullTable, TableDelta};
use crate::outcome::Counters;
use crate::replicas::Heartbeat;
use crate::{metrics, probe};

/// Maximum size of a request body in bytes.
///
/// A table of 10,000 services in 400 deployments, 100,000 prefixes and 100 sites has about 21 MB.
const MAX_BODY: usize = 256 << 20;

#[derive(Clone)]
struct App {
    control: Arc<ControlPlane>,
    registry: Arc<Registry>,
}

/// Creates the router of the API.
pub fn router(control: Arc<ControlPlane>, counters: Vec<Arc<Counters>>) -> Router {
    let registry = Arc::new(metrics::new_registry(control.clone(), counters.into()));
    Router::new()
        .route("/table", get(get_table).put(put_table).patch(patch_table))
        .route("/replicas", get(get_replicas))
        .route("/replicas/{sid}", put(put_replica).delete(delete_replica))
        .route("/measurements", get(take_measurements))
        .route("/probe", post(post_probe))
        .route("/metrics", get(get_metrics))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(App { control, registry })
}

const NO_TABLE: &str = "no table: PUT /table first\n";

async fn get_table(State(app): State<App>) -> Response {
    match app.control.summary() {
        Some(summary) => Json(summary).into_response(),
        None => (StatusCode::NOT_FOUND, NO_TABLE).into_response(),
    }
}

async fn put_table(State(app): State<App>, Json(table): Json<FullTable>) -> Response {
    match app.control.replace_table(table) {
        Ok(summary) => Json(summary).into_response(),
        Err(problem) => unprocessable(&problem),
    }
}

async fn patch_table(State(app): State<App>, Json(delta): Json<TableDelta>) -> Response {
    let from = delta.from;
    match app.control.apply_delta(delta) {
        Ok(summary) => Json(summary).into_response(),
        Err(UpdateError::Invalid(problem)) => unprocessable(&problem),
        Err(UpdateError::VersionMismatch(None)) => (StatusCode::CONFLICT, NO_TABLE).into_response(),
        Err(UpdateError::VersionMismatch(Some(version))) => {
            let problem =
                format!("from: {from} is not the current version {version}: PUT the full table\n");
            (StatusCode::CONFLICT, problem).into_response()
        }
    }
}

async fn get_replicas(State(app): State<App>) -> Response {
    Json(app.control.replicas()).into_response()
}

async fn put_replica(
    State(app): State<App>,
    Path(sid): Path<u16>,
    Json(heartbeat): Json<Heartbeat>,
) -> Response {
    match app.control.record_heartbeat(sid, heartbeat) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(problem) => unprocessable(&problem),
    }
}

async fn delete_replica(State(app): State<App>, Path(sid): Path<u16>) -> StatusCode {
    if app.control.remove_replica(sid) {
        StatusCode::NO_CONTENT
    } else {
        StatusCode::NOT_FOUND
    }
}

async fn take_measurements(State(app): State<App>) -> Response {
    match app.control.take_measurements() {
        Some(measurements) => Json(measurements).into_response(),
        None => (StatusCode::NOT_FOUND, NO_TABLE).into_response(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbeRequest {
    addresses: BTreeSet<IpAddr>,
}

async fn post_probe(
    State(app): State<App>,
    Json(ProbeRequest { addresses }): Json<ProbeRequest>,
) -> Response {
    if addresses.len() > probe::MAX_ADDRESSES {
        return unprocessable(&format!(
            "addresses: {} given: must be at most {}",
            addresses.len(),
            probe::MAX_ADDRESSES
        ));
    }
    let sent = addresses.len();
    let probed = tokio::task::spawn_blocking(move || probe::probe(&addresses)).await;
    match probed.unwrap_or_else(|panic| Err(std::io::Error::other(panic))) {
        Ok(measured) => {
            let answered = measured.len();
            app.control.add_measurements(measured);
            Json(serde_json::json!({ "sent": sent, "answered": answered })).into_response()
        }
        Err(error) => {
            let problem = format!("cannot probe: {error}: run the dispatcher with CAP_NET_RAW\n");
            (StatusCode::INTERNAL_SERVER_ERROR, problem).into_response()
        }
    }
}

async fn get_metrics(State(app): State<App>) -> impl IntoResponse {
    ([(CONTENT_TYPE, OPEN_METRICS)], encode(&app.registry))
}

fn unprocessable(problem: &str) -> Response {
    (StatusCode::UNPROCESSABLE_ENTITY, format!("{problem}\n")).into_response()
}
