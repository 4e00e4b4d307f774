// SPDX-License-Identifier: Apache-2.0
//! HTTP/1.1 origin from which balancers proxy requests that they do not delegate.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use frontage_http::body::RequestBody;
use http_body_util::BodyExt as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use crate::shared::Shared;

/// Serve all connections to `listener`.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        // An error concerns only the connection that was to be accepted.
        if let Ok((stream, peer)) = listener.accept().await {
            // An optimization, so errors are ignored.
            let _ = stream.set_nodelay(true);
            tokio::spawn(connection(stream, peer, shared.clone()));
        }
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>) {
    let respond = |request: http::Request<hyper::body::Incoming>| {
        let shared = shared.clone();
        async move {
            let target = shared.routes.target(&request);
            let request =
                request.map(|body| RequestBody::streamed(body.map_err(Into::into).boxed_unsync()));
            let response = shared.routes.respond(target, peer, request).await;
            Ok::<_, Infallible>(response)
        }
    };
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new());
    let served = server.serve_connection(TokioIo::new(stream), service_fn(respond));
    // The balancer's proxy reports failures.
    let _ = served.await;
}
