//! What a running switch shows of its packets: traces and captures.

mod common;

use std::path::Path;
use std::process::Command;

use common::features::{self, frame, l2};
use common::{Controller, TestSwitch};
use softswitch::port::Capture;
use softswitch::switch::Config;
use softswitch::trace::{TraceFormat, TraceLog};

/// A switch on which frames from 2 to 1 go from port 1 to port 2.
async fn forwarding(configure: impl FnOnce(Config) -> Config) -> (TestSwitch, Controller) {
    let switch = TestSwitch::start_with(2, &[], configure).await;
    let mut controller = switch.controller().await;
    controller.set_pipeline(features::config()).await.unwrap();
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
async fn a_trace_as_json_has_a_line_for_each_pass() {
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
async fn a_trace_as_text_has_a_paragraph_for_each_packet() {
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
async fn a_trace_that_cannot_be_written_is_counted_and_stops_nothing() {
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
            port.io = Box::new(Capture::new(port.io, dir, &port.name).unwrap());
            port
        };
        config.ports = config.ports.into_iter().map(wrap).collect();
        config
    }
}

/// The frames' bytes, as tcpdump reads them; none where there is no tcpdump.
fn tcpdump(path: &Path) -> Option<Vec<String>> {
    let output = Command::new("tcpdump")
        .args(["-nn", "-t", "-xx", "-r"])
        .arg(path)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(e) => {
            eprintln!("skipped: tcpdump: {e}");
            return None;
        }
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
fn a_capture_that_cannot_be_begun_names_its_file() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", dir.path().join("wire1_in.pcap")).unwrap();
    let (port, _wire) = common::pair();
    let error = Capture::new(Box::new(port), dir.path(), "wire1").err();
    let error = error.expect("no space for its header").to_string();
    assert!(error.contains("wire1_in.pcap: No space left"), "{error}");
}
