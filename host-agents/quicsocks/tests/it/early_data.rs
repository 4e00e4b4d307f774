// SPDX-License-Identifier: Apache-2.0
//! 0-RTT data through the proxy, with and without Retry (RFC 9000, section 17.2.5.3).

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use frontage_quicsocks::outcome::{ClientDatagram, Lookup, ServerDatagram};
use frontage_quicsocks_client::socks::Reply;
use frontage_quicsocks_client::{self as client, Association, Error};
use tokio::time::timeout;

use crate::testbed::{
    NAME, Options, Resolver, TEST_TIMEOUT, exchange, start_proxy, start_server, start_slow_path,
};

#[tokio::test]
async fn early_data_arrives_through_the_proxy_despite_retry() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    for retry in [false, true] {
        let proxy = start_proxy(resolver.address, Options::default()).await;
        let server = start_server(retry);
        let port = start_slow_path(server.port, Duration::from_millis(50)).await;
        let proxy_address = proxy.addresses()[0].to_string();
        let connect = async || {
            let association = Association::connect(&proxy_address, None).await.unwrap();
            let config = server.config.clone();
            let connecting = client::connect_early(&association, config, NAME, port);
            timeout(TEST_TIMEOUT, connecting).await.unwrap().unwrap()
        };
        let (first, early) = connect().await;
        assert!(early.is_none(), "the client has no ticket yet");
        exchange(&first.quic, b"the ticket arrives before the echo").await;
        let (second, early) = connect().await;
        // More than the initial congestion window of 10 datagrams.
        let request = [7; 20_000];
        timeout(TEST_TIMEOUT, exchange(&second.quic, &request))
            .await
            .unwrap();
        assert!(
            early
                .expect("the client has a ticket")
                .accepted()
                .await
                .unwrap()
        );
        assert_eq!(
            server.early_bytes.load(Relaxed),
            request.len() as u64,
            "retry: {retry}"
        );
        let metrics = proxy.metrics();
        assert_eq!(metrics.client_datagrams.get(ClientDatagram::QueueFull), 0);
        assert_eq!(metrics.lookups.get(Lookup::Resolved), 2);
        let retries = metrics.server_datagrams.get(ServerDatagram::RetryAnswered);
        assert_eq!(retries, 2 * u64::from(retry));
        // The connection leaves the proxy like any other.
        let (quic, _endpoint) = (second.quic.clone(), second.endpoint.clone());
        let migrated = timeout(TEST_TIMEOUT, second.migrate(None)).await.unwrap();
        assert_eq!(migrated.unwrap().server.port(), port);
        exchange(&quic, b"on the direct path").await;
    }
}

#[tokio::test]
async fn early_data_reports_why_the_proxy_cannot_reach_the_server() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let server = start_server(false);
    // Only the first of these proxies may forward to the server.
    let mut results = Vec::new();
    for allow_loopback in [true, false] {
        let options = Options {
            allow_loopback,
            ..Options::default()
        };
        let proxy = start_proxy(resolver.address, options).await;
        let address = proxy.addresses()[0].to_string();
        let association = Association::connect(&address, None).await.unwrap();
        let config = server.config.clone();
        let connecting = client::connect_early(&association, config, NAME, server.port);
        let (connection, early) = timeout(TEST_TIMEOUT, connecting).await.unwrap().unwrap();
        match early {
            Some(early) => results.push(timeout(TEST_TIMEOUT, early.accepted()).await.unwrap()),
            None => exchange(&connection.quic, b"ticket").await,
        }
    }
    assert!(
        matches!(results[..], [Err(Error::Rejected(Reply::NotAllowed))]),
        "{results:?}"
    );
}
