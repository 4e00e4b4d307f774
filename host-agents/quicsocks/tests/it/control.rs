//! Malformed and unwanted requests on the control connection.

use frontage_quicsocks::config::Limits;
use frontage_quicsocks::outcome::Control;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::lab::{Options, proxy, until};

const ASSOCIATE: &[u8] = &[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0];

/// Nobody is asked for a name here.
const NOWHERE: &str = "127.0.0.1:9";

#[tokio::test]
async fn each_has_an_outcome_and_an_answer() {
    let proxy = proxy(NOWHERE.parse().unwrap(), Options::default()).await;
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
        (&[5, 1, 0, 5], Control::Gone, &[5, 0]),
    ];
    for (said, outcome, answer) in cases {
        let before = proxy.metrics().control.get(outcome);
        let mut stream = TcpStream::connect(proxy.addresses()[0]).await.unwrap();
        stream.write_all(said).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await.unwrap();
        assert!(heard.starts_with(answer), "{said:?}: {heard:?}");
        until(
            || proxy.metrics().control.get(outcome) == before + 1,
            outcome.name(),
        )
        .await;
    }
    assert_eq!(proxy.metrics().control.get(Control::Associated), 0);
}

#[tokio::test]
async fn authentication_has_outcomes_of_its_own() {
    let proxy = proxy(NOWHERE.parse().unwrap(), Options::with_a_user()).await;
    let cases: [(&[u8], Control, &[u8]); 4] = [
        (&[5, 1, 0], Control::Method, &[5, 0xff]),
        (&[5, 1, 2, 9], Control::Malformed, &[5, 2]),
        (
            b"\x05\x01\x02\x01\x03ada\x06wrong!",
            Control::Password,
            &[5, 2, 1, 1],
        ),
        (b"\x05\x01\x02\x01\x03ada\x06eng", Control::Gone, &[5, 2]),
    ];
    for (said, outcome, answer) in cases {
        let mut stream = TcpStream::connect(proxy.addresses()[0]).await.unwrap();
        stream.write_all(said).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, answer, "{said:?}");
        until(|| proxy.metrics().control.get(outcome) == 1, outcome.name()).await;
    }
}

#[tokio::test]
async fn a_client_has_so_many_associations() {
    let limits = Limits {
        associations_per_client: 2,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let proxy = proxy(NOWHERE.parse().unwrap(), options).await;
    let mut open = Vec::new();
    for expected in [0, 0, 2] {
        let mut stream = TcpStream::connect(proxy.addresses()[0]).await.unwrap();
        stream.write_all(ASSOCIATE).await.unwrap();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, [5, 0, 5, expected]);
        open.push(stream);
    }
    let metrics = proxy.metrics();
    until(|| metrics.control.get(Control::Limit) == 1, "the limit").await;
    assert_eq!(metrics.control.get(Control::Associated), 2);
    // An association ends with its connection.
    drop(open);
    let none = || {
        metrics
            .associations
            .load(std::sync::atomic::Ordering::Relaxed)
            == 0
    };
    until(none, "no association").await;
}
