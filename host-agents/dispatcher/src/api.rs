//! What the controller and the replicas say over HTTP.

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

use crate::control::{Control, Refused};
use crate::counts::Counts;
use crate::message::{Difference, Whole};
use crate::replicas::Heartbeat;
use crate::{metrics, probe};

/// A table of 10,000 services in 400 deployments, 100,000 prefixes and 100 sites has some 21 MB.
const MAX_BODY: usize = 256 << 20;

#[derive(Clone)]
struct App {
    control: Arc<Control>,
    registry: Arc<Registry>,
}

/// The routes.
pub fn router(control: Arc<Control>, counts: Vec<Arc<Counts>>) -> Router {
    Router::new()
        .route("/table", get(table).put(replace).patch(change))
        .route("/replicas", get(replicas))
        .route("/replicas/{sid}", put(beat).delete(remove))
        .route("/measurements", get(measurements))
        .route("/probe", post(probe_addresses))
        .route("/metrics", get(page))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(App {
            registry: Arc::new(metrics::new(control.clone(), counts.into())),
            control,
        })
}

const NO_TABLE: &str = "there is no table yet; PUT /table first\n";

async fn table(State(app): State<App>) -> Response {
    match app.control.sizes() {
        Some(sizes) => Json(sizes).into_response(),
        None => (StatusCode::NOT_FOUND, NO_TABLE).into_response(),
    }
}

async fn replace(State(app): State<App>, Json(whole): Json<Whole>) -> Response {
    match app.control.replace(whole) {
        Ok(sizes) => Json(sizes).into_response(),
        Err(problem) => wrong(&problem),
    }
}

async fn change(State(app): State<App>, Json(difference): Json<Difference>) -> Response {
    let from = difference.from;
    match app.control.change(difference) {
        Ok(sizes) => Json(sizes).into_response(),
        Err(Refused::Wrong(problem)) => wrong(&problem),
        Err(Refused::Version(None)) => (StatusCode::CONFLICT, NO_TABLE).into_response(),
        Err(Refused::Version(Some(version))) => {
            let problem =
                format!("from is {from}, but the table is of version {version}; PUT the whole\n");
            (StatusCode::CONFLICT, problem).into_response()
        }
    }
}

async fn replicas(State(app): State<App>) -> Response {
    Json(app.control.replicas()).into_response()
}

async fn beat(
    State(app): State<App>,
    Path(sid): Path<u16>,
    Json(heartbeat): Json<Heartbeat>,
) -> Response {
    match app.control.beat(sid, heartbeat) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(problem) => wrong(&problem),
    }
}

async fn remove(State(app): State<App>, Path(sid): Path<u16>) -> StatusCode {
    if app.control.remove(sid) {
        StatusCode::NO_CONTENT
    } else {
        StatusCode::NOT_FOUND
    }
}

async fn measurements(State(app): State<App>) -> Response {
    match app.control.take_measurements() {
        Some(taken) => Json(taken).into_response(),
        None => (StatusCode::NOT_FOUND, NO_TABLE).into_response(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Probe {
    addresses: BTreeSet<IpAddr>,
}

async fn probe_addresses(
    State(app): State<App>,
    Json(Probe { addresses }): Json<Probe>,
) -> Response {
    if addresses.len() > probe::MAX {
        return wrong(&format!(
            "addresses: there are {}; at most {} at once",
            addresses.len(),
            probe::MAX
        ));
    }
    let sent = addresses.len();
    let probed = tokio::task::spawn_blocking(move || probe::probe(&addresses)).await;
    match probed.unwrap_or_else(|panic| Err(std::io::Error::other(panic))) {
        Ok(measured) => {
            let answered = measured.len();
            app.control.measured(measured);
            Json(serde_json::json!({ "sent": sent, "answered": answered })).into_response()
        }
        Err(error) => {
            let problem = format!("cannot probe: {error}; it needs CAP_NET_RAW\n");
            (StatusCode::INTERNAL_SERVER_ERROR, problem).into_response()
        }
    }
}

async fn page(State(app): State<App>) -> impl IntoResponse {
    ([(CONTENT_TYPE, OPEN_METRICS)], encode(&app.registry))
}

fn wrong(problem: &str) -> Response {
    (StatusCode::UNPROCESSABLE_ENTITY, format!("{problem}\n")).into_response()
}
