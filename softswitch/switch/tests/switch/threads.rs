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

impl Flow {
    /// Returns the flows from every port to every other port.
    fn all() -> Vec<Self> {
        let pairs = (1..=PORTS).flat_map(|from| (1..=PORTS).map(move |to| (from, to)));
        let flows = pairs
            .filter(|(from, to)| from != to)
            .map(|(from, to)| Self {
                from,
                to,
                arrived: AtomicU32::new(0),
            });
        flows.collect()
    }

    /// Returns the destination address of the frames that leave the switch.
    fn address(&self) -> u64 {
        u64::from(self.from << 8 | self.to)
    }

    /// Returns the rule that forwards the frames.
    fn rule(&self) -> p4::TableEntry {
        l2(
            self.from.into(),
            self.address(),
            "forward",
            &[self.to.into()],
        )
    }

    fn arrived(&self) -> u32 {
        self.arrived.load(Ordering::Acquire)
    }
}

/// The frames of flows.
struct Traffic {
    ether_type: u16,
    /// Makes the frame with a sequence number.
    frame: fn(&Flow, u32) -> Vec<u8>,
    /// Position of the sequence number.
    number_at: usize,
    /// Number of frames of each flow.
    frames: u32,
}

impl Traffic {
    fn number(&self, frame: &[u8]) -> u32 {
        let bytes = &frame[self.number_at..];
        u32::from_be_bytes(bytes[..4].try_into().unwrap())
    }

    /// Sends the frames of all flows from and to the far ends `e1`, `e2`, ..., and checks that each flow arrives in order and
    /// completely. Calls `beside` again and again until then.
    fn exchange(&self, flows: &[Flow], mut beside: impl FnMut()) {
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
        let check_time = |what: &str| {
            let arrived: Vec<_> = flows.iter().map(Flow::arrived).collect();
            let is_in_time = begin.elapsed() < 3 * TEST_TIMEOUT;
            assert!(
                is_in_time,
                "{what} does not end: frames that arrived: {arrived:?}"
            );
        };
        let check_time = &check_time;
        std::thread::scope(|scope| {
            for (port, (mut transmitter, mut receiver)) in (1..).zip(ends) {
                scope.spawn(move || {
                    let outgoing = || flows.iter().filter(|flow| flow.from == port);
                    let mut sent = vec![0; outgoing().count()];
                    while sent.iter().any(|n| *n < self.frames) {
                        for (flow, sent) in outgoing().zip(&mut sent) {
                            let end = self.frames.min(flow.arrived() + WINDOW);
                            (*sent..end).for_each(|n| transmitter.send(&(self.frame)(flow, n)));
                            *sent = end;
                        }
                        assert_eq!(transmitter.flush().busy, 0);
                        std::thread::yield_now();
                        check_time("sending");
                    }
                });
                scope.spawn(move || {
                    let incoming = flows.iter().filter(|flow| flow.to == port);
                    let incoming: HashMap<u64, &Flow> =
                        incoming.map(|flow| (flow.address(), flow)).collect();
                    while incoming.values().any(|flow| flow.arrived() < self.frames) {
                        receiver.fill();
                        receiver.frames(&mut |frame| {
                            if frame[12..14] == self.ether_type.to_be_bytes() {
                                let to = u64::from(frame[4]) << 8 | u64::from(frame[5]);
                                let next = incoming[&to].arrived.fetch_add(1, Ordering::AcqRel);
                                assert_eq!(self.number(frame), next, "flow {to:x}");
                            }
                        });
                        std::thread::yield_now();
                        check_time("receiving");
                    }
                });
            }
            while flows.iter().any(|flow| flow.arrived() < self.frames) {
                beside();
                check_time("the exchange");
            }
        });
    }
}

#[test]
fn flows_keep_order_without_loss() {
    const TYPE: u16 = 0x88b6;
    let traffic = Traffic {
        ether_type: TYPE,
        frame: |flow, n| frame(flow.address(), 1, TYPE, &n.to_be_bytes().repeat(12)),
        number_at: 14,
        frames: 5_000,
    };
    with_veths(PORTS as usize, || {
        let runtime = Runtime::new().unwrap();
        // One port has a link, whose frames a timer sends.
        let (switch, mut controller) =
            runtime.block_on(start(&["4:rate=1gbit,queue=4MB,delay=1ms"]));
        let flows = Flow::all();
        for flow in &flows {
            runtime.block_on(controller.insert(flow.rule())).unwrap();
        }
        traffic.exchange(&flows, || std::thread::sleep(Duration::from_millis(1)));
        runtime.block_on(switch.stop());
    });
}

/// Threads run packets at the same time, beside a controller that writes entries and reads counters.
#[test]
fn counters_are_exact_and_flows_in_order_beside_table_writes() {
    const FRAMES: u32 = 5_000;
    const BYTES: i64 = 14 + 20 + 24;
    let program = std::str::from_utf8(&features::config().p4_device_config)
        .map(|json| softswitch_pipeline::Program::load(json).unwrap())
        .unwrap();
    assert!(
        program.parallelism().is_parallel(),
        "{}",
        program.parallelism()
    );
    let destination = |flow: &Flow| 0x0a00_0000 + flow.address();
    let traffic = Traffic {
        ether_type: IPV4,
        frame: |flow, n| {
            let mut packet = vec![0; 20];
            packet[0] = 0x45;
            packet[16] = 10;
            packet[18..20].copy_from_slice(&(flow.address() as u16).to_be_bytes());
            packet.extend(n.to_be_bytes().repeat(6));
            frame(1, 1, IPV4, &packet)
        },
        number_at: 14 + 20,
        frames: FRAMES,
    };
    with_veths(PORTS as usize, || {
        let runtime = Runtime::new().unwrap();
        let (switch, mut controller) = runtime.block_on(start(&[]));
        let flows = Flow::all();
        for flow in &flows {
            let route = p4::TableEntry {
                action: features::direct("route", &[flow.address(), flow.to.into()]),
                ..features::route(destination(flow), 32, flow.to.into())
            };
            runtime.block_on(controller.insert(route)).unwrap();
            runtime.block_on(controller.insert(flow.rule())).unwrap();
        }
        let port_counter = |port: u32| p4::CounterEntry {
            counter_id: features::counter("port_counter"),
            index: Some(p4::Index { index: port.into() }),
            data: None,
        };
        let read_ports = |controller: &mut Controller| {
            let counters = (1..=PORTS).map(|port| {
                match runtime
                    .block_on(controller.read_one(port_counter(port)))
                    .entity
                {
                    Some(p4::entity::Entity::CounterEntry(entry)) => entry.data.unwrap(),
                    other => panic!("not a counter: {other:?}"),
                }
            });
            counters.collect::<Vec<_>>()
        };
        let others = |kind| {
            let other = |n: u64| update(kind, l2(1, 0x10_0000 + n, "forward", &[1]));
            (0..64).map(other).collect::<Vec<_>>()
        };
        let (mut rounds, mut last) = (0, read_ports(&mut controller));
        traffic.exchange(&flows, || {
            for kind in [Type::Insert, Type::Delete] {
                runtime.block_on(controller.write(others(kind))).unwrap();
                let counts = read_ports(&mut controller);
                for (count, before) in counts.iter().zip(&last) {
                    assert!(count.packet_count >= before.packet_count, "a count fell");
                }
                last = counts;
            }
            rounds += 1;
        });
        assert!(
            rounds > 1,
            "without writes beside packets, the test would be void"
        );
        let of_flow = p4::CounterData {
            packet_count: FRAMES.into(),
            byte_count: i64::from(FRAMES) * BYTES,
        };
        let flows_of_port = i64::from(PORTS - 1);
        let of_port = p4::CounterData {
            packet_count: of_flow.packet_count * flows_of_port,
            byte_count: of_flow.byte_count * flows_of_port,
        };
        assert_eq!(read_ports(&mut controller), vec![of_port; PORTS as usize]);
        let routes = p4::TableEntry {
            table_id: features::table("routes"),
            counter_data: Some(p4::CounterData::default()),
            ..Default::default()
        };
        let routes = runtime.block_on(controller.read_table(routes));
        let counts: Vec<_> = routes.iter().map(|route| route.counter_data).collect();
        assert_eq!(counts, vec![Some(of_flow); flows.len()]);
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
