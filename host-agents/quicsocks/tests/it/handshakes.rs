// SPDX-License-Identifier: Apache-2.0
//! Handshakes of our own client through the proxy, and its migration to the direct path.

use std::sync::atomic::Ordering::Relaxed;

use frontage_quicsocks::outcome::{FlowEnd, Lookup, ServerDatagram};
use frontage_quicsocks_client::socks::Reply;
use frontage_quicsocks_client::{self as client, Association, Credentials, Error};
use tokio::time::timeout;

use crate::testbed::{
    NAME, Options, Resolver, TEST_TIMEOUT, exchange, start_proxy, start_server, wait_until,
};

#[tokio::test]
async fn connection_through_proxy_migrates_to_direct_path() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    for retry in [false, true] {
        let (proxy, server) = (
            start_proxy(resolver.address, Options::default()).await,
            start_server(retry),
        );
        let proxy_address = proxy.addresses()[0].to_string();
        let association = Association::connect(&proxy_address, None).await.unwrap();
        let connecting = client::connect(&association, server.config.clone(), NAME, server.port);
        let connected = timeout(TEST_TIMEOUT, connecting).await.unwrap().unwrap();
        let (quic, _endpoint) = (connected.quic.clone(), connected.endpoint.clone());
        exchange(&quic, b"through the proxy").await;
        let metrics = proxy.metrics();
        assert_eq!(
            metrics.server_datagrams.get(ServerDatagram::RetryAnswered),
            u64::from(retry)
        );
        assert_eq!(metrics.lookups.get(Lookup::Resolved), 1);
        let migrated = timeout(TEST_TIMEOUT, connected.migrate(None))
            .await
            .unwrap();
        assert_eq!(migrated.unwrap().server.port(), server.port);
        // Migration drops the old socket, which releases the flow.
        wait_until(
            || metrics.flow_ends.get(FlowEnd::Released) == 1,
            "the end of the flow",
        )
        .await;
        wait_until(
            || metrics.flows.load(Relaxed) == 0,
            "the gauge of flows to drop to 0",
        )
        .await;
        let forwarded = (
            metrics.bytes_up.load(Relaxed),
            metrics.bytes_down.load(Relaxed),
        );
        exchange(&quic, &[7; 100_000]).await;
        let now = (
            metrics.bytes_up.load(Relaxed),
            metrics.bytes_down.load(Relaxed),
        );
        assert_eq!(
            now, forwarded,
            "the proxy must not forward anything after migration"
        );
        // The association serves further connections.
        let connecting = client::connect(&association, server.config.clone(), NAME, server.port);
        let again = timeout(TEST_TIMEOUT, connecting).await.unwrap().unwrap();
        exchange(&again.quic, b"again").await;
    }
}

#[tokio::test]
async fn unresolvable_name_is_rejected_at_once() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let (proxy, server) = (
        start_proxy(resolver.address, Options::default()).await,
        start_server(false),
    );
    let proxy_address = proxy.addresses()[0].to_string();
    let association = Association::connect(&proxy_address, None).await.unwrap();
    for (name, outcome, reply) in [
        ("absent.example", Lookup::NoSuchName, Reply::HostUnreachable),
        ("empty.example", Lookup::NoAddress, Reply::HostUnreachable),
        ("refused.example", Lookup::Failed, Reply::HostUnreachable),
        ("inside.example", Lookup::Denied, Reply::NotAllowed),
    ] {
        let connecting = client::connect(&association, server.config.clone(), name, server.port);
        let result = timeout(TEST_TIMEOUT, connecting).await.unwrap();
        assert!(
            matches!(result, Err(Error::Rejected(code)) if code == reply),
            "{name}: {result:?}"
        );
        wait_until(|| proxy.metrics().lookups.get(outcome) >= 1, outcome.name()).await;
    }
    assert_eq!(proxy.metrics().lookups.get(Lookup::Resolved), 0);
}

#[tokio::test]
async fn wrong_password_is_rejected() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let proxy = start_proxy(resolver.address, Options::with_user()).await;
    let proxy_address = proxy.addresses()[0].to_string();
    let with = |password: &str| Credentials {
        name: "ada".into(),
        password: password.into(),
    };
    for (credentials, is_accepted) in [
        (None, false),
        (Some(with("wrong")), false),
        (Some(with("engine")), true),
    ] {
        let association = Association::connect(&proxy_address, credentials.as_ref()).await;
        assert_eq!(association.is_ok(), is_accepted, "{association:?}");
    }
}
