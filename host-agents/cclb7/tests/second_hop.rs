// SPDX-License-Identifier: Apache-2.0
//! Marked packets of connections that the server's kernel does not know go back to the switch.

mod common;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use common::Namespace;
use common::lab::{PASS, PacketLab, V4, V6};
use common::tun::Tun;
use frontage_cclb7::agent::{self, Attachment, Sizes};
use frontage_cclb7::frame::{ACK, ETHERNET, RST, SYN, Segment, build, tcp_offset};

const MARK: u8 = 0x04;
/// The verdict of `bpf_redirect`.
const REDIRECT: i32 = 7;

fn segment(lab: &PacketLab, flags: u8) -> Segment {
    Segment {
        options: vec![],
        flags,
        ..lab.acknowledgement(0, 0)
    }
}

/// Return the frame with the mark of the second hop.
fn marked(segment: &Segment) -> Vec<u8> {
    let mut frame = build(segment);
    let tcp = tcp_offset(&frame);
    frame[tcp + 12] |= MARK;
    frame
}

/// Return the frame with exchanged addresses and ports.
fn exchanged(frame: &[u8]) -> Vec<u8> {
    let mut result = frame.to_vec();
    let tcp = tcp_offset(frame);
    let is_ipv6 = frame[12] == 0x86;
    let (addresses, size) = if is_ipv6 {
        (ETHERNET + 8, 16)
    } else {
        (ETHERNET + 12, 4)
    };
    for (at, size) in [(0, 6), (addresses, size), (tcp, 2)] {
        result[at..at + 2 * size].rotate_left(size);
    }
    result
}

#[test]
fn marked_packet_of_unknown_connection_is_sent_back() {
    for side in [V4, V6] {
        let Some(mut lab) = PacketLab::new(side) else {
            return;
        };
        for flags in [ACK, RST, RST | ACK] {
            let frame = marked(&segment(&lab, flags));
            let outcome = lab.outcome("cclb7_ingress", &frame);
            assert_eq!(outcome, (REDIRECT, exchanged(&frame)));
        }
    }
}

#[test]
fn marked_packet_is_sent_back_on_a_device_without_ethernet_header() {
    for side in [V4, V6] {
        let Some(lab) = PacketLab::new(side) else {
            return;
        };
        let namespace = Namespace::new("tun");
        let tun = namespace.run(|| Tun::create("tun0"));
        for address in [V4.0, V6.0] {
            let address: SocketAddr = address.parse().unwrap();
            namespace.sh(&format!("ip addr add {} dev tun0", address.ip()));
        }
        namespace.sh("ip link set tun0 addrgenmode none up");
        let pin_dir = Path::new("/sys/fs/bpf").join(namespace.name());
        let wanted = Attachment {
            interface: "tun0".into(),
            ports: vec![lab.server.port()],
            bandwidth: 1_000_000_000,
            look_ahead: 1_000_000,
            syn_keys: None,
            sizes: Sizes {
                flows: 64,
                handshakes: 64,
            },
            pin_dir: pin_dir.clone(),
        };
        namespace.run(|| agent::attach(&wanted).expect("the agent attaches"));
        let frame = marked(&segment(&lab, ACK));
        tun.deliver(&frame[ETHERNET..]);
        // The kernel may send packets of its own first.
        let refused = exchanged(&frame);
        let found = (0..10).any(|_| tun.sent().as_deref() == Some(&refused[ETHERNET..]));
        namespace.run(|| agent::detach(&pin_dir).expect("the agent detaches"));
        assert!(found);
    }
}

#[test]
fn unmarked_packets_and_syns_reach_the_kernel() {
    for side in [V4, V6] {
        let Some(mut lab) = PacketLab::new(side) else {
            return;
        };
        for frame in [
            build(&segment(&lab, ACK)),
            marked(&segment(&lab, SYN)),
            marked(&Segment {
                destination: SocketAddr::new(lab.server.ip(), 81),
                ..segment(&lab, ACK)
            }),
        ] {
            assert_eq!(lab.outcome("cclb7_ingress", &frame), (PASS, frame.clone()));
        }
    }
}

#[test]
fn marked_packet_of_known_connection_reaches_the_kernel() {
    for loopback in ["127.0.0.1:0", "[::1]:0"] {
        let Some(mut lab) = PacketLab::new(V4) else {
            return;
        };
        let listener = TcpListener::bind(loopback).unwrap();
        lab.server = listener.local_addr().unwrap();
        lab.set_server(Default::default());
        let client = TcpStream::connect(lab.server).unwrap();
        lab.client = client.local_addr().unwrap();
        let known = marked(&segment(&lab, ACK));
        assert_eq!(lab.outcome("cclb7_ingress", &known), (PASS, known.clone()));

        lab.client.set_port(1); // only the listening socket is left
        let unknown = marked(&segment(&lab, ACK));
        assert_eq!(
            lab.outcome("cclb7_ingress", &unknown),
            (REDIRECT, exchanged(&unknown))
        );
    }
}
