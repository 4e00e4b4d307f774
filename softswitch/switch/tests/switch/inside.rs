// SPDX-License-Identifier: Apache-2.0
//! Traces and captures of a running switch.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::features::{self, frame, l2};
use crate::common::{Controller, TEST_TIMEOUT, TestSwitch};
use nix::sched::{CloneFlags, setns};
use softswitch::port::capture;
use softswitch::switch::Config;
use softswitch::trace::{TraceFormat, TraceLog};
use test_requirements::{privileged, require};

/// Starts a switch that forwards frames to address 2 to port 2.
async fn forwarding(configure: impl FnOnce(Config) -> Config) -> (TestSwitch, Controller) {
    let switch = TestSwitch::start_with(2, &[], configure).await;
    let mut controller = switch.controller_with(features::config()).await;
    controller.insert(l2(1, 2, "forward", &[2])).await.unwrap();
    (switch, controller)
}

fn traced(format: TraceFormat, path: &Path) -> impl FnOnce(Config) -> Config {
    let trace = TraceLog::create(format, Some(path)).unwrap();
    |config| Config {
        trace: Some(trace),
        ..config
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_trace_has_one_line_per_pass() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    let (switch, _controller) = forwarding(traced(TraceFormat::Json, &path)).await;
    for _ in 0..2 {
        switch.wires[0].send(&frame(2, 1, 0x1234, b"hello"));
        switch.wires[1].receive();
    }
    // The trace is written before the frame is sent.
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let passes: Vec<_> = lines
        .iter()
        .map(|l| (l["packet"].as_u64().unwrap(), l["pass"].as_str().unwrap()))
        .collect();
    let expected = [(1, "ingress"), (1, "egress"), (2, "ingress"), (2, "egress")];
    assert_eq!(passes, expected);
    assert_eq!(lines[0]["outcome"]["is"], "unicast");
    assert_eq!(lines[1]["outcome"]["length"], 19);
}

#[tokio::test(flavor = "multi_thread")]
async fn text_trace_has_one_paragraph_per_packet() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    let (switch, _controller) = forwarding(traced(TraceFormat::Text, &path)).await;
    for _ in 0..2 {
        switch.wires[0].send(&frame(2, 1, 0x1234, b"hello"));
        switch.wires[1].receive();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let paragraphs: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(paragraphs.len(), 2, "{text}");
    assert!(
        paragraphs[0].starts_with("packet 1 in by port 1 at "),
        "{text}"
    );
    assert!(
        paragraphs[1].ends_with("  sent by port 2, 19 bytes\n"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unwritable_trace_is_counted_and_switch_continues() {
    let full = traced(TraceFormat::Text, Path::new("/dev/full"));
    let (switch, _controller) = forwarding(full).await;
    for _ in 0..3 {
        switch.wires[0].send(&frame(2, 1, 0x1234, b"hello"));
        switch.wires[1].receive();
    }
    let lost = &switch.switch.metrics.dataplane.counters().trace_lost;
    assert_eq!(lost.get(), 6);
}

fn captured(dir: &Path) -> impl FnOnce(Config) -> Config {
    |mut config| {
        let wrap = |mut port: softswitch::dataplane::PortSetup| {
            port.receiver = capture::received(port.receiver, dir, &port.name).unwrap();
            port.transmitter = capture::sent(port.transmitter, dir, &port.name).unwrap();
            port
        };
        config.ports = config.ports.into_iter().map(wrap).collect();
        config
    }
}

/// Reads the frames of a capture with tcpdump; `None` if tcpdump is not installed.
fn tcpdump(path: &Path) -> Option<Vec<String>> {
    let output = Command::new("tcpdump")
        .args(["-nn", "-t", "-xx", "-r"])
        .arg(path)
        .output();
    let Ok(output) = output else {
        require(false, "tcpdump", "apt install tcpdump");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut frames: Vec<String> = Vec::new();
    for line in text.lines() {
        match line.trim().strip_prefix("0x") {
            Some(row) => {
                let bytes = row.split_once(':').unwrap().1;
                frames.last_mut().unwrap().push_str(&bytes.replace(' ', ""));
            }
            None => frames.push(String::new()),
        }
    }
    Some(frames)
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_can_be_read_while_the_switch_runs() {
    let dir = tempfile::tempdir().unwrap();
    let captures = dir.path().join("captures");
    let (switch, _controller) = forwarding(captured(&captures)).await;
    let frames = [
        frame(2, 1, 0x1234, b"hello"),
        frame(2, 1, 0x1234, &[7; 300]),
    ];
    for frame in &frames {
        switch.wires[0].send(frame);
        switch.wires[1].receive();
    }
    let hex = |f: &Vec<u8>| f.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let sent: Vec<String> = frames.iter().map(hex).collect();
    for (name, expected) in [
        ("wire1_in", &sent[..]),
        ("wire1_out", &[]),
        ("wire2_in", &[]),
        ("wire2_out", &sent[..]),
    ] {
        let Some(read) = tcpdump(&captures.join(format!("{name}.pcap"))) else {
            return;
        };
        assert_eq!(read, expected, "{name}");
    }
}

#[test]
fn error_of_unwritable_capture_names_file() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", dir.path().join("wire1_in.pcap")).unwrap();
    let (receiver, _, _wire) = crate::common::port::pair();
    let error = capture::received(Box::new(receiver), dir.path(), "wire1").err();
    let error = error.expect("no space for its header").to_string();
    assert!(error.contains("wire1_in.pcap: No space left"), "{error}");
}

/// A network namespace with both ends of a veth pair; veth2 has the address 10.9.0.1.
struct Namespace(String);

impl Namespace {
    fn create() -> Self {
        let name = format!("swi{}", std::process::id());
        ip(&format!("netns add {name}"));
        let namespace = Self(name);
        for command in [
            "link add veth1 type veth peer name veth2",
            "link set veth1 up",
            "link set veth2 up",
            "addr add 10.9.0.1/24 dev veth2",
            "neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev veth2",
        ] {
            ip(&format!("-n {} {command}", namespace.0));
        }
        namespace
    }

    /// Sends a UDP datagram through veth2, which veth1 receives.
    fn send(&self) {
        let path = format!("/run/netns/{}", self.0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                setns(std::fs::File::open(path).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
                let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
                socket.send_to(b"look at me", "10.9.0.2:9").unwrap();
            });
        });
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.0));
    }
}

fn ip(args: &str) {
    let status = Command::new("ip").args(args.split(' ')).status().unwrap();
    assert!(status.success(), "ip {args}");
}

#[test]
fn options_trace_and_capture_real_interface() {
    if !privileged() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let namespace = Namespace::create();
    let mut switch = Command::new("ip")
        .args([
            "netns",
            "exec",
            &namespace.0,
            env!("CARGO_BIN_EXE_softswitch"),
        ])
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../pipeline/tests/programs/router.json"
        ))
        .args(["-i", "1@veth1", "--trace", "text", "--trace-file"])
        .arg(&trace)
        .arg("--pcap")
        .arg(dir.path())
        .args(["--", "--grpc-server-addr"])
        .arg(format!("unix:{}", dir.path().join("grpc").display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(switch.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    namespace.send();
    // The kernel also sends packets there.
    let traced = |text: &str| {
        let mut paragraphs = text.split("\n\n");
        paragraphs.any(|p| p.contains("dst = 0x0a090002") && p.contains("  dropped by I.drop"))
    };
    let payload: String = b"look at me".iter().map(|b| format!("{b:02x}")).collect();
    let begin = Instant::now();
    loop {
        let text = std::fs::read_to_string(&trace).unwrap();
        let frames = tcpdump(&dir.path().join("veth1_in.pcap"));
        let captured = frames.is_none_or(|f| f.iter().any(|f| f.contains(&payload)));
        if traced(&text) && captured {
            break;
        }
        assert!(begin.elapsed() < TEST_TIMEOUT, "{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(dir.path().join("veth1_out.pcap").exists());
    switch.kill().unwrap();
    switch.wait().unwrap();
}
