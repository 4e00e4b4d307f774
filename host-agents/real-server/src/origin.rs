//! HTTP/1.1 for balancers: what they answer themselves, they fetch here.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use frontage_cclb7_quic::body::RequestBody;
use http_body_util::BodyExt as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use crate::server::Shared;

/// Serves whoever reaches `listener`, until it is dropped.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        // One that goes away costs only its own answers.
        if let Ok((stream, peer)) = listener.accept().await {
            // It only saves time.
            let _ = stream.set_nodelay(true);
            tokio::spawn(connection(stream, peer, shared.clone()));
        }
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>) {
    let answer = |request: http::Request<hyper::body::Incoming>| {
        let shared = shared.clone();
        async move {
            let target = shared.routes.target(&request);
            let request =
                request.map(|body| RequestBody::streamed(body.map_err(Into::into).boxed_unsync()));
            let response = shared.routes.answer(target, peer, request).await;
            Ok::<_, Infallible>(response)
        }
    };
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new());
    let served = server.serve_connection(TokioIo::new(stream), service_fn(answer));
    // The balancer's proxy tells of what broke off.
    let _ = served.await;
}
