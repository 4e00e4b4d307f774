// SPDX-License-Identifier: Apache-2.0
//! Malformed and unsupported requests on the control connection.

use frontage_quicsocks::config::Limits;
use frontage_quicsocks::outcome::Control;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::testbed::{Options, start_proxy, wait_until};

const ASSOCIATE: &[u8] = &[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0];

/// A resolver address that these tests never query.
const UNUSED_RESOLVER: &str = "127.0.0.1:9";

#[tokio::test]
async fn invalid_request_has_its_outcome_and_reply() {
    let proxy = start_proxy(UNUSED_RESOLVER.parse().unwrap(), Options::default()).await;
    let cases: [(&[u8], Control, &[u8]); 7] = [
        (&[4, 1, 0], Control::Version, &[]),
        (&[5, 1, 2], Control::Method, &[5, 0xff]),
        (
            &[5, 1, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0],
            Control::Command,
            &[5, 0, 5, 7],
        ),
        (
            &[5, 1, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0],
            Control::Command,
            &[5, 0, 5, 7],
        ),
        (&[5, 1, 0, 5, 3, 0, 9], Control::Malformed, &[5, 0, 5, 8]),
        (
            &[5, 1, 0, 5, 3, 1, 1, 0, 0, 0, 0, 0, 0],
            Control::Malformed,
            &[5, 0, 5, 1],
        ),
        (&[5, 1, 0, 5], Control::Disconnected, &[5, 0]),
    ];
    for (request, outcome, reply) in cases {
        let before = proxy.metrics().control.get(outcome);
        let mut stream = TcpStream::connect(proxy.addresses()[0]).await.unwrap();
        stream.write_all(request).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.unwrap();
        assert!(received.starts_with(reply), "{request:?}: {received:?}");
        wait_until(
            || proxy.metrics().control.get(outcome) == before + 1,
            outcome.name(),
        )
        .await;
    }
    assert_eq!(proxy.metrics().control.get(Control::Associated), 0);
}

#[tokio::test]
async fn failed_authentication_has_its_outcome_and_reply() {
    let proxy = start_proxy(UNUSED_RESOLVER.parse().unwrap(), Options::with_user()).await;
    let cases: [(&[u8], Control, &[u8]); 4] = [
        (&[5, 1, 0], Control::Method, &[5, 0xff]),
        (&[5, 1, 2, 9], Control::Malformed, &[5, 2]),
        (
            b"\x05\x01\x02\x01\x03ada\x06wrong!",
            Control::Password,
            &[5, 2, 1, 1],
        ),
        (
            b"\x05\x01\x02\x01\x03ada\x06eng",
            Control::Disconnected,
            &[5, 2],
        ),
    ];
    for (request, outcome, reply) in cases {
        let mut stream = TcpStream::connect(proxy.addresses()[0]).await.unwrap();
        stream.write_all(request).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, reply, "{request:?}");
        wait_until(|| proxy.metrics().control.get(outcome) == 1, outcome.name()).await;
    }
}

#[tokio::test]
async fn association_beyond_the_client_limit_is_rejected() {
    let limits = Limits {
        associations_per_client: 2,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let proxy = start_proxy(UNUSED_RESOLVER.parse().unwrap(), options).await;
    let mut open = Vec::new();
    for expected in [0, 0, 2] {
        let mut stream = TcpStream::connect(proxy.addresses()[0]).await.unwrap();
        stream.write_all(ASSOCIATE).await.unwrap();
        let mut reply = [0; 4];
        stream.read_exact(&mut reply).await.unwrap();
        assert_eq!(reply, [5, 0, 5, expected]);
        open.push(stream);
    }
    let metrics = proxy.metrics();
    wait_until(
        || metrics.control.get(Control::AssociationLimit) == 1,
        "the rejected association",
    )
    .await;
    assert_eq!(metrics.control.get(Control::Associated), 2);
    // Closing the control connection ends the association.
    drop(open);
    let all_closed = || {
        metrics
            .associations
            .load(std::sync::atomic::Ordering::Relaxed)
            == 0
    };
    wait_until(all_closed, "the end of all associations").await;
}
