// SPDX-License-Identifier: Apache-2.0
//! The source addresses of a real server's packets carry the same signals as the balancer's (docs/cookie.md): X, and the RPT
//! of the delegated stream.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use frontage_cookie::{Secret, ipv6};
use frontage_handoff::delegate::{Delegate, Transport};
use frontage_handoff::grant;
use frontage_quic::keys::Keys;
use frontage_quic::layer::{Layer, Layered, NullSocket, SendLayer};
use frontage_quic::meter::{Loads, Meter};
use frontage_quic::migration::LocalAddress;
use frontage_quic::socket::{Addressing, CookiePrefix, Socket};
use noq::congestion::CubicConfig;
use noq::udp::Transmit;
use noq::{ConnectionId, UdpSender};

const SID: u16 = 0x1234;
const PREFIX: u64 = 0x2001_0db8_0000_0007;
/// Length of the stream in bytes, which is sent at once.
const LENGTH: usize = 8000;

fn key() -> ipv6::Key {
    ipv6::Key::new(1, &Secret::new(&[3; 16]).unwrap())
}

/// Records source and destination of each packet sent.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Vec<(IpAddr, SocketAddr)>>>);

impl Layer for Recorder {
    type Sender = Self;

    fn sender(&self) -> Self {
        self.clone()
    }
}

impl SendLayer for Recorder {
    fn poll_send(
        &mut self,
        below: Pin<&mut dyn UdpSender>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let source = transmit.src_ip.expect("source address");
        let mut sent = self.0.lock().unwrap();
        sent.push((source, transmit.destination));
        below.poll_send(transmit, cx)
    }
}

#[tokio::test]
async fn source_address_carries_remaining_processing_time() {
    let recorder = Recorder::default();
    let loads = Arc::new(Loads::new(1_000_000));
    let addresses = Addressing {
        path_table: Arc::default(),
        cookie_prefix: Some(CookiePrefix {
            prefix: PREFIX,
            keys: Arc::new(Keys::new(SID, vec![key()]).unwrap()),
            loads: loads.clone(),
            // One byte per microsecond.
            bandwidth: 8_000_000,
        }),
        tunnel: None,
    };
    let null = NullSocket::new("[::]:443".parse().unwrap());
    let recording = Layered::new(Box::new(null), recorder.clone());
    let socket = Socket::over(Box::new(recording), Some(addresses));
    let delegate = Delegate::new(Box::new(socket)).unwrap();
    let meter = Arc::new(Meter::new(loads, Arc::default()));
    meter.set_local_address(LocalAddress::Cookie(1));
    let client = "[2001:db8:1::1]:5000".parse().unwrap();
    let secret = Bytes::from_static(&[9; 32]);
    let grant = grant::Grant {
        path: 1,
        first: 100,
        connection_id: ConnectionId::new(&[7; 8]),
        suite: 0x1301,
        header_secret: secret.clone(),
        keys: grant::Keys {
            generation: 0,
            secret,
        },
        // initial_max_stream_data_bidi_local: 16,383.
        client_parameters: Bytes::from_static(&[0x05, 2, 0x7f, 0xff]),
        server: "[2001:db8:0:7::1]:443".parse().unwrap(),
        client,
        credit: 1 << 20,
        rtt: Duration::from_millis(20),
    };
    let transport = Transport {
        congestion: Arc::new(CubicConfig::default()),
        mtu: 1200,
    };
    let opened = delegate.open(&grant, &transport, meter.clone()).await;
    let delegated = opened.unwrap();
    delegated.request(8, None, b"how much").unwrap();
    let (stream, (mut send, _)) = delegated.accept().await.unwrap();
    meter.begin(stream, Some(LENGTH as u64));
    send.write_all(&[0; LENGTH]).await.unwrap();
    while delegated.sent(8) < Some(LENGTH as u64) {
        tokio::task::yield_now().await;
    }
    let sent = recorder.0.lock().unwrap();
    let mut remaining = Vec::new();
    for (source, destination) in &*sent {
        assert_eq!(*destination, client);
        let IpAddr::V6(source) = source else {
            panic!("{source} is not an IPv6 address");
        };
        assert_eq!((source.to_bits() >> 64) as u64, PREFIX);
        let cookie = key().open(source.to_bits() as u64).expect("a cookie");
        assert_eq!((cookie.sid, cookie.expects_cookie_address), (SID, true));
        remaining.push(cookie.signals.expect("dynamic cookie").rpt_us);
    }
    // RPT is encoded with a precision of a few bits.
    let max = remaining.iter().max().expect("sent packets");
    assert!(
        (LENGTH as u64 * 9 / 10..=LENGTH as u64).contains(max),
        "{remaining:?}"
    );
}
