//! What a client may not send: nothing of it is forwarded, and each case has a name.

use frontage_quicsocks::config::{Bandwidth, Limits};
use frontage_quicsocks::outcome::FromClient;
use frontage_quicsocks::socks::{Destination, header};
use tokio::net::UdpSocket;

use crate::lab::{NAME, Options, Resolver, counted, proxy};
use crate::raw::{Raw, initial};

#[tokio::test]
async fn each_has_an_outcome() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let proxy = proxy(resolver.address, Options::default()).await;
    let client = Raw::new(proxy.addresses()[0]).await;
    let good = header(&Destination::name(NAME.as_bytes(), 443).unwrap());
    let first = initial().await;
    let with = |at: usize, octet: u8| {
        let mut head = good.clone();
        head[at] = octet;
        head
    };
    let broken = |at: usize, xor: u8| {
        let mut wire = first.clone();
        wire[at] ^= xor;
        wire
    };
    let denied = header(&Destination::Address("10.0.0.1:443".parse().unwrap()));
    let port = header(&Destination::Name(NAME.into(), 0));
    for (head, payload, outcome) in [
        (good[..7].to_vec(), vec![], FromClient::Malformed),
        (with(0, 1), first.clone(), FromClient::Reserved),
        (with(2, 1), first.clone(), FromClient::Fragment),
        (with(3, 7), first.clone(), FromClient::AddressType),
        (with(5, b'/'), first.clone(), FromClient::Name),
        (port, first.clone(), FromClient::Port),
        (good.clone(), vec![], FromClient::Empty),
        (good.clone(), first[..1199].to_vec(), FromClient::Short),
        (good.clone(), broken(0, 0x80), FromClient::NotInitial),
        (good.clone(), vec![0x40; 1200], FromClient::NotInitial),
        (good.clone(), broken(1, 0x80), FromClient::QuicVersion),
        (good.clone(), broken(700, 1), FromClient::Forged),
        (denied, first.clone(), FromClient::Denied),
    ] {
        let before = proxy.metrics().from_client.get(outcome);
        client.send(&head, &payload).await;
        counted(&proxy, outcome, before + 1).await;
    }
    assert_eq!(proxy.metrics().from_client.get(FromClient::Forwarded), 0);
    client.send(&good, &first).await;
    counted(&proxy, FromClient::Forwarded, 1).await;
    // Only one port is the client's from now on.
    let other = UdpSocket::bind("[::1]:0").await.unwrap();
    let wire = [&good[..], &first].concat();
    other.send_to(&wire, client.bound).await.unwrap();
    counted(&proxy, FromClient::Foreign, 1).await;
}

#[tokio::test]
async fn flows_and_bandwidth_are_limited() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let limits = Limits {
        flows_per_association: 1,
        // 5,000 bytes at once.
        bandwidth: Bandwidth(40_000),
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let proxy = proxy(resolver.address, options).await;
    let client = Raw::new(proxy.addresses()[0]).await;
    let first = initial().await;
    for (port, outcome) in [(443, FromClient::Forwarded), (444, FromClient::Flows)] {
        let head = header(&Destination::Name(NAME.into(), port));
        client.send(&head, &first).await;
        counted(&proxy, outcome, 1).await;
    }
    let head = header(&Destination::Name(NAME.into(), 443));
    for _ in 0..8 {
        client.send(&head, &first).await;
    }
    let used = || proxy.metrics().from_client.get(FromClient::Bandwidth) >= 1;
    crate::lab::until(used, "the bandwidth's end").await;
}

#[tokio::test]
async fn the_inside_is_closed() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let options = Options {
        closed: true,
        ..Options::default()
    };
    let proxy = proxy(resolver.address, options).await;
    let client = Raw::new(proxy.addresses()[0]).await;
    let first = initial().await;
    let head = header(&Destination::Name(NAME.into(), 443));
    client.send(&head, &first).await;
    // The reply says so.
    let mut wire = [0; 512];
    let n = client.socket.recv(&mut wire).await.unwrap();
    assert_eq!(wire[..head.len()], head[..]);
    assert_eq!(wire[head.len()..n][..3], [5, 2, 0]);
    assert_eq!(proxy.metrics().from_client.get(FromClient::Forwarded), 0);
}
