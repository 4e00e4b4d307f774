// SPDX-License-Identifier: Apache-2.0
//! A switch with several packet threads between veth pairs.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::common::features::{self, frame, l2};
use crate::common::network::with_veths;
use crate::common::{Controller, IntoEntity, TEST_TIMEOUT, update};
use p4::update::Type;
use softswitch::address::Address;
use softswitch::dataplane::PortSetup;
use softswitch::port::{Receive, Receiver, Transmit, Transmitter};
use softswitch::proto::p4::v1 as p4;
use softswitch::proto::p4::v1::p4_runtime_client::P4RuntimeClient;
use softswitch::switch::{Config, Switch};
use softswitch_queue::PortLink;
use tokio::runtime::Runtime;

const PORTS: u32 = 4;
const IPV4: u16 = 0x0800;

/// Maximum number of frames of a flow in flight. The frames of all flows fit into the kernel's queue of
/// 1,000 frames per processor between the ends of veths (`net.core.netdev_max_backlog`).
const WINDOW: u32 = 64;

/// Starts a switch at `p1`, `p2`, ..., with one thread per port and the program `features.p4`.
async fn start(links: &[&str]) -> (Switch, Controller) {
    let links: Vec<PortLink> = links.iter().map(|l| l.parse().unwrap()).collect();
    let ports = (1..=PORTS).map(|number| PortSetup {
        number,
        name: format!("p{number}"),
        receiver: Box::new(Receiver::open(&format!("p{number}")).unwrap()),
        transmitter: Box::new(Transmitter::open(&format!("p{number}")).unwrap()),
        link: (links.iter().find(|l| l.port == number)).map_or_else(Default::default, |l| l.link),
    });
    // The namespace's loopback interface is down.
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("swthreads{}n{number}.sock", std::process::id());
    let address = format!("unix:{}", std::env::temp_dir().join(name).display());
    let config = Config {
        ports: ports.collect(),
        threads: NonZeroUsize::new(PORTS as usize).unwrap(),
        cpu_port: None,
        grpc: address.parse::<Address>().unwrap(),
        ..crate::common::config()
    };
    let switch = Switch::start(config).await.unwrap();
    let client = P4RuntimeClient::connect(address).await.unwrap();
    let mut controller = Controller::open(client).await;
    controller.arbitrate(1).await;
    controller.set_pipeline(features::config()).await.unwrap();
    (switch, controller)
}

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Frames from one port to another, with their own destination address.
struct Flow {
    from: u32,
    to: u32,
    arrived: AtomicU32,
}

/// Returns the sequence number of a flow's frame, which follows addresses and type.
fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[14..18].try_into().unwrap())
}

#[test]
fn flows_keep_order_without_loss() {
    const TYPE: u16 = 0x88b6;
    const FRAMES: u32 = 5_000;
    with_veths(PORTS as usize, || {
        let runtime = Runtime::new().unwrap();
        // Every port sends to every other port; one port has a link, whose frames a timer sends.
        let (switch, mut controller) =
            runtime.block_on(start(&["4:rate=1gbit,queue=4MB,delay=1ms"]));
        let pairs = (1..=PORTS).flat_map(|from| (1..=PORTS).map(move |to| (from, to)));
        let flows: Vec<Flow> = pairs
            .filter(|(from, to)| from != to)
            .map(|(from, to)| Flow {
                from,
                to,
                arrived: AtomicU32::new(0),
            })
            .collect();
        let address = |flow: &Flow| u64::from(flow.from << 8 | flow.to);
        for flow in &flows {
            let rule = l2(
                flow.from.into(),
                address(flow),
                "forward",
                &[flow.to.into()],
            );
            runtime.block_on(controller.insert(rule)).unwrap();
        }
        // All sockets are open before the first frame is sent.
        let ends: Vec<_> = (1..=PORTS)
            .map(|port| format!("e{port}"))
            .map(|name| {
                (
                    Transmitter::open(&name).unwrap(),
                    Receiver::open(&name).unwrap(),
                )
            })
            .collect();
        let begin = Instant::now();
        std::thread::scope(|scope| {
            for (port, (mut transmitter, mut receiver)) in (1..).zip(ends) {
                let of_port = |end: fn(&Flow) -> u32| flows.iter().filter(move |f| end(f) == port);
                let (outgoing, incoming) = (of_port(|f| f.from), of_port(|f| f.to));
                scope.spawn(move || {
                    let mut sent = vec![0; outgoing.clone().count()];
                    while sent.iter().any(|n| *n < FRAMES) {
                        for (flow, sent) in outgoing.clone().zip(&mut sent) {
                            let end = FRAMES.min(flow.arrived.load(Ordering::Acquire) + WINDOW);
                            for n in *sent..end {
                                let payload = n.to_be_bytes().repeat(12);
                                transmitter.send(&frame(address(flow), 1, TYPE, &payload));
                            }
                            *sent = end;
                        }
                        assert_eq!(transmitter.flush().busy, 0);
                        std::thread::yield_now();
                        assert!(
                            begin.elapsed() < 3 * TEST_TIMEOUT,
                            "port {port} sent {sent:?}"
                        );
                    }
                });
                scope.spawn(move || {
                    let flows: HashMap<u64, &Flow> = incoming.map(|f| (address(f), f)).collect();
                    while flows
                        .values()
                        .any(|f| f.arrived.load(Ordering::Relaxed) < FRAMES)
                    {
                        receiver.fill();
                        receiver.frames(&mut |frame| {
                            if frame[12..14] == TYPE.to_be_bytes() {
                                let to = u64::from(frame[4]) << 8 | u64::from(frame[5]);
                                let next = flows[&to].arrived.fetch_add(1, Ordering::AcqRel);
                                assert_eq!(number(frame), next, "flow {to:x}");
                            }
                        });
                        std::thread::yield_now();
                        assert!(
                            begin.elapsed() < 3 * TEST_TIMEOUT,
                            "frames to port {port} are lost"
                        );
                    }
                });
            }
        });
        runtime.block_on(switch.stop());
    });
}

/// Returns an IPv4 frame to 10.0.0.1, as far as the program parses it.
fn packet() -> Vec<u8> {
    let mut header = vec![0; 46];
    header[0] = 0x45;
    header[16..20].copy_from_slice(&[10, 0, 0, 1]);
    frame(1, 1, IPV4, &header)
}

#[test]
fn all_threads_see_batch_atomically() {
    const ROUNDS: u64 = 300;
    with_veths(PORTS as usize, || {
        let runtime = Runtime::new().unwrap();
        let (switch, mut controller) = runtime.block_on(start(&[]));
        // The route sets a packet's destination, for which a rule exists in only one version of the tables; without
        // a rule, the packet leaves through the wrong port.
        const WRONG: u64 = 4;
        let route = |version| p4::TableEntry {
            action: features::direct("route", &[version, WRONG]),
            ..features::route(0x0a00_0001, 32, WRONG)
        };
        let rules = |version| [1, 2].map(|port| l2(port, version, "forward", &[3]).entity());
        let batch = |version| {
            let (old, new) = (rules(version - 1), rules(version));
            let first = if version == 2 {
                Type::Insert
            } else {
                Type::Modify
            };
            let mut updates = vec![update(first, route(version))];
            if version > 2 {
                updates.extend(old.map(|rule| update(Type::Delete, rule)));
            }
            updates.extend(new.map(|rule| update(Type::Insert, rule)));
            updates
        };
        runtime.block_on(controller.write(batch(2))).unwrap();
        let done = AtomicBool::new(false);
        let (arrived, astray) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for (port, count) in [("e3", &arrived), ("e4", &astray)] {
                let mut receiver = Receiver::open(port).unwrap();
                let done = &done;
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        receiver.fill();
                        receiver.frames(&mut |frame| {
                            if frame[12..14] == IPV4.to_be_bytes() {
                                count.fetch_add(1, Ordering::Relaxed);
                            }
                        });
                        std::thread::sleep(Duration::from_micros(200));
                    }
                });
            }
            for port in ["e1", "e2"] {
                let mut transmitter = Transmitter::open(port).unwrap();
                let done = &done;
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        (0..8).for_each(|_| transmitter.send(&packet()));
                        transmitter.flush();
                        std::thread::sleep(Duration::from_micros(200));
                    }
                });
            }
            for version in 3..3 + ROUNDS {
                runtime.block_on(controller.write(batch(version))).unwrap();
            }
            // Without a continuous stream of packets, the test would be void.
            let begin = Instant::now();
            while arrived.load(Ordering::Relaxed) < 1000 && begin.elapsed() < TEST_TIMEOUT {
                std::thread::sleep(Duration::from_millis(1));
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(arrived.into_inner() >= 1000, "packets do not arrive");
        assert_eq!(astray.into_inner(), 0, "packets have seen a partial batch");
        runtime.block_on(switch.stop());
    });
}
