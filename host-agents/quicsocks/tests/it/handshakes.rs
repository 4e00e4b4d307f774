//! Our own client through the proxy, and its way to the direct path.

use std::sync::atomic::Ordering::Relaxed;

use frontage_quicsocks::client::{self, Credentials, Error, Relay};
use frontage_quicsocks::outcome::{End, FromServer, Name};
use frontage_quicsocks::socks::Reply;
use tokio::time::timeout;

use crate::lab::{NAME, Options, PATIENCE, Resolver, proxy, server, until};

async fn echo(quic: &noq::Connection, text: &[u8]) {
    let (mut send, mut receive) = quic.open_bi().await.unwrap();
    send.write_all(text).await.unwrap();
    send.finish().unwrap();
    assert_eq!(receive.read_to_end(1 << 20).await.unwrap(), text);
}

#[tokio::test]
async fn a_connection_begins_at_the_proxy_and_goes_on_without_it() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    for retry in [false, true] {
        let (proxy, server) = (
            proxy(resolver.address, Options::default()).await,
            server(retry),
        );
        let at = proxy.addresses()[0].to_string();
        let relay = Relay::connect(&at, None).await.unwrap();
        let connecting = client::connect(&relay, server.config.clone(), NAME, server.port);
        let connected = timeout(PATIENCE, connecting).await.unwrap().unwrap();
        let (quic, _endpoint) = (connected.quic.clone(), connected.endpoint.clone());
        echo(&quic, b"through the proxy").await;
        let metrics = proxy.metrics();
        assert_eq!(
            metrics.from_server.get(FromServer::RetryAnswered),
            u64::from(retry)
        );
        assert_eq!(metrics.names.get(Name::Resolved), 1);
        let migrated = timeout(PATIENCE, connected.migrate(None)).await.unwrap();
        assert_eq!(migrated.unwrap().server.port(), server.port);
        // The old socket is gone, and with it the flow.
        until(|| metrics.ends.get(End::Released) == 1, "the flow's end").await;
        until(|| metrics.flows.load(Relaxed) == 0, "no flow").await;
        let forwarded = (metrics.up.load(Relaxed), metrics.down.load(Relaxed));
        echo(&quic, &[7; 100_000]).await;
        let now = (metrics.up.load(Relaxed), metrics.down.load(Relaxed));
        assert_eq!(now, forwarded, "nothing more goes through the proxy");
        // The association serves the next connection.
        let connecting = client::connect(&relay, server.config.clone(), NAME, server.port);
        let again = timeout(PATIENCE, connecting).await.unwrap().unwrap();
        echo(&again.quic, b"again").await;
    }
}

#[tokio::test]
async fn what_cannot_be_resolved_is_said_at_once() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let (proxy, server) = (
        proxy(resolver.address, Options::default()).await,
        server(false),
    );
    let at = proxy.addresses()[0].to_string();
    let relay = Relay::connect(&at, None).await.unwrap();
    for (name, outcome, reply) in [
        ("absent.example", Name::NoSuchName, Reply::HostUnreachable),
        ("empty.example", Name::NoAddress, Reply::HostUnreachable),
        ("refused.example", Name::Failed, Reply::HostUnreachable),
        ("inside.example", Name::Denied, Reply::NotAllowed),
    ] {
        let connecting = client::connect(&relay, server.config.clone(), name, server.port);
        let refused = timeout(PATIENCE, connecting).await.unwrap();
        assert!(
            matches!(refused, Err(Error::Refused(said)) if said == reply),
            "{name}: {refused:?}"
        );
        until(|| proxy.metrics().names.get(outcome) >= 1, outcome.name()).await;
    }
    assert_eq!(proxy.metrics().names.get(Name::Resolved), 0);
}

#[tokio::test]
async fn users_need_their_password() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let proxy = proxy(resolver.address, Options::with_a_user()).await;
    let at = proxy.addresses()[0].to_string();
    let with = |password: &str| Credentials {
        name: "ada".into(),
        password: password.into(),
    };
    for (credentials, good) in [
        (None, false),
        (Some(with("wrong")), false),
        (Some(with("engine")), true),
    ] {
        let relay = Relay::connect(&at, credentials.as_ref()).await;
        assert_eq!(relay.is_ok(), good, "{relay:?}");
    }
}
