// SPDX-License-Identifier: Apache-2.0
//! A resolver that does not answer.

use frontage_quicsocks::outcome::{ClientDatagram, FlowEnd, Lookup};
use frontage_quicsocks_client::socks::{Destination, encode_header};
use tokio::net::UdpSocket;

use crate::raw_client::{RawClient, capture_initial};
use crate::testbed::{NAME, Options, start_proxy, wait_for_count, wait_until};

#[tokio::test]
async fn queue_is_bounded_and_client_receives_the_timeout() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let proxy = start_proxy(silent.local_addr().unwrap(), Options::default()).await;
    let client = RawClient::new(proxy.addresses()[0]).await;
    let head = encode_header(&Destination::name(NAME.as_bytes(), 443).unwrap());
    let first = capture_initial().await;
    for _ in 0..18 {
        client.send(&head, &first).await;
    }
    wait_for_count(&proxy, ClientDatagram::Queued, 16).await;
    wait_for_count(&proxy, ClientDatagram::QueueFull, 2).await;
    let metrics = proxy.metrics();
    wait_until(|| metrics.lookups.get(Lookup::Timeout) == 1, "the timeout").await;
    wait_until(
        || metrics.flow_ends.get(FlowEnd::Unresolved) == 1,
        "the end of the flow",
    )
    .await;
    let mut wire = [0; 512];
    let n = client.socket.recv(&mut wire).await.unwrap();
    assert_eq!(wire[..head.len()], head[..]);
    assert_eq!(wire[head.len()..n][..3], [5, 4, 0]);
}
