//! A resolver that does not answer.

use frontage_quicsocks::outcome::{End, FromClient, Name};
use frontage_quicsocks::socks::{Destination, header};
use tokio::net::UdpSocket;

use crate::lab::{NAME, Options, counted, proxy, until};
use crate::raw::{Raw, initial};

#[tokio::test]
async fn so_much_waits_for_it_and_the_client_is_told() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let proxy = proxy(silent.local_addr().unwrap(), Options::default()).await;
    let client = Raw::new(proxy.addresses()[0]).await;
    let head = header(&Destination::name(NAME.as_bytes(), 443).unwrap());
    let first = initial().await;
    for _ in 0..10 {
        client.send(&head, &first).await;
    }
    counted(&proxy, FromClient::Waiting, 8).await;
    counted(&proxy, FromClient::Queue, 2).await;
    let metrics = proxy.metrics();
    until(|| metrics.names.get(Name::Timeout) == 1, "the timeout").await;
    until(|| metrics.ends.get(End::Unresolved) == 1, "the flow's end").await;
    let mut wire = [0; 512];
    let n = client.socket.recv(&mut wire).await.unwrap();
    assert_eq!(wire[..head.len()], head[..]);
    assert_eq!(wire[head.len()..n][..3], [5, 4, 0]);
}
