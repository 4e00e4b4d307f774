// SPDX-License-Identifier: Apache-2.0
//! Clones and recirculated packets of several threads.

use std::num::NonZeroUsize;

use softswitch::proto::p4::v1 as p4;
use softswitch::switch::Config;
use softswitch_p4c::diag::{Diagnostics, SourceMap};

use crate::common::TestSwitch;
use crate::common::features::{clone_session, frame, replica};

/// The ports that receive.
const SOURCES: usize = 2;
/// Frames of each of these ports.
const FRAMES: u32 = 1500;

/// Returns the config of `returns.p4`.
fn config() -> p4::ForwardingPipelineConfig {
    let text = include_str!("../programs/returns.p4").to_owned();
    let options = softswitch_p4c::Options::default();
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let output = softswitch_p4c::compile("returns.p4", text, &options, &sources, &diags);
    let output = output.unwrap();
    p4::ForwardingPipelineConfig {
        p4info: Some(crate::common::p4info(&output.p4info)),
        p4_device_config: output.json.unwrap().to_string().into(),
        cookie: None,
    }
}

/// The threads that serve the queue of port 3 alternate: its owner when the link is free, and those of the sources. Nevertheless,
/// its packets, their clones and the recirculated ones stay in order.
#[tokio::test(flavor = "multi_thread")]
async fn clones_and_recirculated_packets_of_a_flow_stay_in_order() {
    let threads = NonZeroUsize::new(4).unwrap();
    let with_threads = |config| Config { threads, ..config };
    let links = ["2:rate=1gbit,queue=1MB", "3:rate=500mbit,queue=1MB"];
    let switch = TestSwitch::start_with(4, &links, with_threads).await;
    let mut controller = switch.controller_with(config()).await;
    let session = clone_session(1, vec![replica(4, 0)]);
    controller.insert(session).await.unwrap();
    let wires = &switch.wires;
    std::thread::scope(|scope| {
        for (source, wire) in wires[..SOURCES].iter().enumerate() {
            scope.spawn(move || {
                for n in 0..FRAMES {
                    wire.send(&frame(
                        source as u64,
                        1,
                        0x1234,
                        &n.to_be_bytes().repeat(12),
                    ));
                }
            });
        }
        for (what, wire) in [("packet", &wires[2]), ("recirculated clone", &wires[1])] {
            scope.spawn(move || {
                let mut next = [0; SOURCES];
                while next.iter().any(|n| *n < FRAMES) {
                    let frame = wire.receive();
                    let source = usize::from(frame[5]);
                    let number = u32::from_be_bytes(frame[14..18].try_into().unwrap());
                    assert_eq!(number, next[source], "{what} of source {source}");
                    next[source] += 1;
                }
            });
        }
    });
}
