// SPDX-License-Identifier: Apache-2.0
//! Client datagrams that the proxy must not forward, each with its outcome.

use frontage_quicsocks::config::{Bandwidth, Limits};
use frontage_quicsocks::outcome::ClientDatagram;
use frontage_quicsocks_client::socks::{Destination, encode_header};
use tokio::net::UdpSocket;

use crate::raw_client::{RawClient, capture_initial};
use crate::testbed::{NAME, Options, Resolver, start_proxy, wait_for_count};

#[tokio::test]
async fn unforwardable_datagram_has_its_outcome() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let proxy = start_proxy(resolver.address, Options::default()).await;
    let client = RawClient::new(proxy.addresses()[0]).await;
    let good = encode_header(&Destination::name(NAME.as_bytes(), 443).unwrap());
    let first = capture_initial().await;
    let with = |at: usize, octet: u8| {
        let mut head = good.clone();
        head[at] = octet;
        head
    };
    let damaged = |at: usize, xor: u8| {
        let mut wire = first.clone();
        wire[at] ^= xor;
        wire
    };
    let denied = encode_header(&Destination::Address("10.0.0.1:443".parse().unwrap()));
    let port = encode_header(&Destination::Name(NAME.into(), 0));
    for (head, payload, outcome) in [
        (good[..7].to_vec(), vec![], ClientDatagram::Malformed),
        (with(0, 1), first.clone(), ClientDatagram::Reserved),
        (with(2, 1), first.clone(), ClientDatagram::Fragment),
        (with(3, 7), first.clone(), ClientDatagram::AddressType),
        (with(5, b'/'), first.clone(), ClientDatagram::InvalidName),
        (port, first.clone(), ClientDatagram::InvalidPort),
        (good.clone(), vec![], ClientDatagram::Empty),
        (
            good.clone(),
            first[..1199].to_vec(),
            ClientDatagram::TooShort,
        ),
        (good.clone(), damaged(0, 0x80), ClientDatagram::NotInitial),
        (good.clone(), vec![0x40; 1200], ClientDatagram::NotInitial),
        (good.clone(), damaged(1, 0x80), ClientDatagram::QuicVersion),
        (good.clone(), damaged(700, 1), ClientDatagram::Undecryptable),
        (denied, first.clone(), ClientDatagram::Denied),
    ] {
        let before = proxy.metrics().client_datagrams.get(outcome);
        client.send(&head, &payload).await;
        wait_for_count(&proxy, outcome, before + 1).await;
    }
    assert_eq!(
        proxy
            .metrics()
            .client_datagrams
            .get(ClientDatagram::Forwarded),
        0
    );
    client.send(&good, &first).await;
    wait_for_count(&proxy, ClientDatagram::Forwarded, 1).await;
    // The association is now bound to the client's port.
    let other = UdpSocket::bind("[::1]:0").await.unwrap();
    let wire = [&good[..], &first].concat();
    other.send_to(&wire, client.bound).await.unwrap();
    wait_for_count(&proxy, ClientDatagram::WrongSource, 1).await;
}

#[tokio::test]
async fn flows_and_bandwidth_beyond_the_limit_are_dropped() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let limits = Limits {
        flows_per_association: 1,
        // A burst of 5,000 bytes.
        bandwidth: Bandwidth(40_000),
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let proxy = start_proxy(resolver.address, options).await;
    let client = RawClient::new(proxy.addresses()[0]).await;
    let first = capture_initial().await;
    // A server that does not answer. If no socket were bound to the port, the flow would end.
    let server = tokio::net::UdpSocket::bind("[::1]:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    for (port, outcome) in [
        (port, ClientDatagram::Forwarded),
        (port ^ 1, ClientDatagram::FlowLimit),
    ] {
        let head = encode_header(&Destination::Name(NAME.into(), port));
        client.send(&head, &first).await;
        wait_for_count(&proxy, outcome, 1).await;
    }
    let head = encode_header(&Destination::Name(NAME.into(), port));
    for _ in 0..8 {
        client.send(&head, &first).await;
    }
    let limited = || {
        proxy
            .metrics()
            .client_datagrams
            .get(ClientDatagram::BandwidthLimit)
            >= 1
    };
    crate::testbed::wait_until(limited, "the bandwidth limit").await;
}

#[tokio::test]
async fn name_with_non_public_address_is_denied() {
    let Some(resolver) = Resolver::start().await else {
        return;
    };
    let options = Options {
        allow_loopback: false,
        ..Options::default()
    };
    let proxy = start_proxy(resolver.address, options).await;
    let client = RawClient::new(proxy.addresses()[0]).await;
    let first = capture_initial().await;
    let head = encode_header(&Destination::Name(NAME.into(), 443));
    client.send(&head, &first).await;
    // The proxy reports that the destination is not allowed.
    let mut wire = [0; 512];
    let n = client.socket.recv(&mut wire).await.unwrap();
    assert_eq!(wire[..head.len()], head[..]);
    assert_eq!(wire[head.len()..n][..3], [5, 2, 0]);
    assert_eq!(
        proxy
            .metrics()
            .client_datagrams
            .get(ClientDatagram::Forwarded),
        0
    );
}
