// SPDX-License-Identifier: Apache-2.0
//! The log of packets.
//!
//! `UPDATE=1 cargo test -p softswitch --test switch log::` rewrites the expected file.

use std::path::Path;
use std::sync::Arc;

use crate::common::features::{self, frame, l2};
use crate::common::{TEST_TIMEOUT, TestSwitch};
use softswitch::log::{Log, LogLevel, PacketLog};
use softswitch::switch::Config;

/// Forwards one packet and drops one; returns the log without time stamps and thread numbers.
async fn log(level: LogLevel) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let log = Log::file(level, &path, 1 << 20, 1).unwrap();
    let configure = |config: Config| Config {
        log: Some(PacketLog::new(Arc::clone(&log), config.options.drop_port)),
        ..config
    };
    let switch = TestSwitch::start_with(2, &[], configure).await;
    let mut controller = switch.controller_with(features::config()).await;
    controller.insert(l2(1, 2, "forward", &[2])).await.unwrap();
    controller.insert(l2(1, 3, "drop", &[])).await.unwrap();
    // The third packet shows that the second one has been dropped.
    for destination in [2, 3, 2] {
        switch.wires[0].send(&frame(destination, 1, 0x1234, b"hello"));
    }
    for _ in 0..2 {
        let frame = switch.wires[1].receive_within(TEST_TIMEOUT);
        assert!(frame.is_some(), "no frame in time");
    }
    let text = std::fs::read_to_string(dir.path().join("log.txt")).unwrap();
    let end = text
        .find("[2.0]")
        .map(|at| text[..at].rfind('\n').unwrap() + 1);
    let first = &text[..end.unwrap_or(text.len())];
    let without_prefix = |line: &str| match line.split_once("] [bmv2] [") {
        Some((_, rest)) => {
            let (level, rest) = rest.split_at(1);
            let message = rest.split_once("] [thread ").unwrap().1;
            format!("{level} {}\n", message.split_once("] ").unwrap().1)
        }
        None => format!("{line}\n"),
    };
    first.lines().map(without_prefix).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_of_packets_are_logged_as_by_simple_switch() {
    let text = log(LogLevel::Trace).await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs/l2.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{}", path.display());
    assert!(text.contains("D [0.0] [cxt 0] Table 'FeaturesIngress.l2': hit with handle 0"));
    assert!(text.contains("D [1.0] [cxt 0] Dropping packet at the end of ingress"));
}

#[tokio::test(flavor = "multi_thread")]
async fn debug_omits_actions_and_info_omits_packets() {
    let text = log(LogLevel::Debug).await;
    assert!(
        text.contains("Transmitting packet of size 19 out of port 2"),
        "{text}"
    );
    assert!(!text.lines().any(|line| line.starts_with("T ")), "{text}");
    assert_eq!(log(LogLevel::Info).await, "");
}
