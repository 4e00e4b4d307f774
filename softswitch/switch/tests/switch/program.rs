// SPDX-License-Identifier: Apache-2.0
//! The program `softswitch`: options, output, signals, exit status.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use softswitch_thrift::client::Client;

fn program(args: &[&str]) -> Command {
    program_at(env!("CARGO_BIN_EXE_softswitch").as_ref(), args)
}

fn program_at(path: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(path);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A running program, and the lines that it printed until it was ready.
struct Running {
    child: Child,
    lines: Vec<String>,
}

impl Running {
    fn start(args: &[&str]) -> Self {
        Self::spawn(program(args))
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.as_mut().unwrap());
        let mut lines = Vec::new();
        for line in stdout.lines() {
            let line = line.unwrap();
            if line == "ready" {
                return Self { child, lines };
            }
            lines.push(line);
        }
        panic!("not ready: {lines:?} {:?}", child.wait_with_output());
    }

    fn value(&self, key: &str) -> &str {
        self.find(key).unwrap()
    }

    fn find(&self, key: &str) -> Option<&str> {
        let mut values = self
            .lines
            .iter()
            .filter_map(|l| l.strip_prefix(key)?.strip_prefix('='));
        values.next()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Waits for the end, and returns exit status and standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let mut stderr = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        (self.child.wait().unwrap().code(), stderr)
    }
}

#[test]
fn report_tells_how_threads_share_a_program() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/features.json");
    let output = program(&[path, "--report"]).output().unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{report}");
    assert!(report.starts_with("Packets "), "{report}");
    let output = program(&["--no-p4", "--report"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn program_prints_address_and_ends_on_signals() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let running = Running::start(&["--no-p4", "--", "--grpc-server-addr", "127.0.0.1:0"]);
        let address = running.value("grpc-server-addr");
        assert!(TcpStream::connect(address).is_ok(), "{address}");
        running.signal(signal);
        let (status, stderr) = running.end();
        assert_eq!(status, Some(0), "{stderr}");
        assert!(stderr.contains("switch: "), "{stderr}");
    }
}

#[test]
fn program_serves_metrics_and_prints_summary_on_signal() {
    let running = Running::start(&[
        "--no-p4",
        "--metrics-addr",
        "127.0.0.1:0",
        "--thrift-port",
        "0",
        "--",
        "--grpc-server-addr",
        "127.0.0.1:0",
    ]);
    let get = |path: &str| {
        let mut connection = TcpStream::connect(running.value("metrics-addr")).unwrap();
        write!(connection, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = get("/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("\n# TYPE softswitch_packet_in counter\nsoftswitch_packet_in_total 0\n"),
        "{answer}"
    );
    assert!(get("/").starts_with("HTTP/1.1 404 "));
    running.signal(Signal::SIGUSR1);
    // The switch is still running.
    assert!(get("/metrics").starts_with("HTTP/1.1 200 "));
    let thrift = running.value("thrift-addr");
    let (_, port) = thrift.rsplit_once(':').unwrap();
    let mut client = Client::connect(format!("127.0.0.1:{port}")).unwrap();
    let info = client.bm_mgmt_get_info().unwrap();
    assert_eq!(info.thrift_port.to_string(), port);
    running.signal(Signal::SIGTERM);
    let (status, _) = running.end();
    assert_eq!(status, Some(0));
}

#[test]
fn names_of_bmv2_serve_thrift_at_9090_unless_it_is_taken() {
    use crate::common::network::{ip, with_veths};

    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("simple_switch_grpc");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_softswitch"), &link).unwrap();
    let notifications = |name: &str| format!("ipc://{}", directory.path().join(name).display());
    let start = |name: &str| {
        let args = [
            "--no-p4",
            "--notifications-addr",
            &notifications(name),
            "--",
            "--grpc-server-addr",
            "127.0.0.1:0",
        ];
        Running::spawn(program_at(&link, &args))
    };
    with_veths(0, || {
        ip("link set lo up");
        let first = start("first");
        assert_eq!(first.find("thrift-addr"), Some("127.0.0.1:9090"));
        let info = Client::connect("127.0.0.1:9090")
            .unwrap()
            .bm_mgmt_get_info()
            .unwrap();
        assert_eq!(info.thrift_port, 9090);
        assert_eq!(info.notifications_socket, Some(notifications("first")));
        let second = start("second");
        assert_eq!(second.find("thrift-addr"), None);
        second.signal(Signal::SIGTERM);
        let (status, stderr) = second.end();
        assert_eq!(status, Some(0), "{stderr}");
        let note = stderr.lines().next().unwrap();
        assert!(
            note.contains("no Thrift server: cannot listen on 127.0.0.1:9090")
                && note.contains("--thrift-port"),
            "{stderr}"
        );
        first.signal(Signal::SIGTERM);
        assert_eq!(first.end().0, Some(0));
    });
}

#[test]
fn unix_socket_is_removed_at_exit_and_stale_one_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("switch.sock");
    let address = format!("unix:{}", path.display());
    let args = ["--no-p4", "--", "--grpc-server-addr", &address];
    let mut killed = Running::start(&args);
    assert_eq!(killed.value("grpc-server-addr"), address);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert!(path.exists(), "a killed process leaves its socket");
    let running = Running::start(&args);
    let second = program(&args).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let stderr = String::from_utf8(second.stderr).unwrap();
    assert!(
        stderr.contains("--grpc-server-addr") && stderr.contains("another process listens"),
        "{stderr}"
    );
    running.signal(Signal::SIGTERM);
    assert_eq!(running.end().0, Some(0));
    assert!(!path.exists());
}

#[test]
fn errors_name_option_or_file() {
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let occupied = occupied.local_addr().unwrap().to_string();
    let broken = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(broken.path(), "{}").unwrap();
    let broken = broken.path().to_str().unwrap();
    for (args, status, expected) in [
        (&["--no-p4", "--wrong"][..], 2, "--wrong"),
        (&[], 2, "PROGRAM.json"),
        (
            &["/nowhere/program.json"],
            1,
            "cannot read program /nowhere/program.json",
        ),
        (&[broken, "--grpc-server-addr", "127.0.0.1:0"], 1, broken),
        (
            &["--no-p4", "--grpc-server-addr", &occupied],
            1,
            "cannot listen on",
        ),
    ] {
        let output = program(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {stderr}");
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
    }
    if test_requirements::privileged() {
        let output = program(&["--no-p4", "-i", "1@absent0"]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(
            stderr.contains("--interface 1@absent0: unknown interface 'absent0'"),
            "{stderr}"
        );
    }
    let help = program(&["--help"]).output().unwrap();
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8(help.stdout).unwrap().contains("Example:"));
}

/// Returns the little-endian bytes of a pcap file with these frames, one microsecond apart.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for (i, frame) in frames.iter().enumerate() {
        let length = frame.len() as u32;
        for word in [1, i as u32, length, length] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    bytes
}

#[test]
fn files_replace_interfaces_and_log_file_is_written() {
    use crate::common::TEST_TIMEOUT;

    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    // Without entries, the program forwards packets of type 0x1234 to port 0.
    let frames = [1, 2].map(|source| crate::common::features::frame(2, source, 0x1234, b"hello"));
    std::fs::write(path("pcap0_in.pcap"), pcap(&frames)).unwrap();
    let json = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/features.json");
    let address = format!("unix:{}", path("grpc").display());
    let mut child = program(&[
        "--log-file",
        "log",
        "--log-flush",
        "--use-files",
        "0",
        "--dump-packet-data",
        "4",
        "-i",
        "0@pcap0",
        json,
        "--",
        "--grpc-server-addr",
        &address,
    ])
    .current_dir(directory.path())
    .spawn()
    .unwrap();
    let sent = || {
        std::fs::read(path("pcap0_out.pcap"))
            .unwrap_or_default()
            .len()
    };
    let expected = 24 + 2 * (16 + frames[0].len());
    let deadline = std::time::Instant::now() + TEST_TIMEOUT;
    while sent() < expected && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(sent(), expected);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    assert!(child.wait().unwrap().success());
    let log = std::fs::read_to_string(path("log.txt")).unwrap();
    for line in [
        "[D] ",
        "[0.0] [cxt 0] Processing packet received on port 0",
        "[1.0] [cxt 0] Transmitting packet of size 19 out of port 0",
        "Received packet of length 19 on port 0: 00000000",
        "Sending packet of length 19 on port 0: 00000000",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
    // No lines of libraries.
    let prefixed = log.lines().filter(|line| line.starts_with('['));
    assert!(prefixed.clone().count() > 20);
    assert!(!log.contains("cranelift"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_controllers_are_logged() {
    use crate::common::features::{config, l2};
    use crate::common::{Client, Controller};

    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let running = Running::start(&[
        "--no-p4",
        "--device-id",
        "1",
        "--log-file",
        log.to_str().unwrap(),
        "-L",
        "debug",
        "--",
        "--grpc-server-addr",
        "127.0.0.1:0",
    ]);
    let address = format!("http://{}", running.value("grpc-server-addr"));
    let mut controller = Controller::open(Client::connect(address).await.unwrap()).await;
    controller.arbitrate(1).await;
    controller.set_pipeline(config()).await.unwrap();
    for destination in [2, 3] {
        let entry = l2(1, destination, "forward", &[2]);
        controller.insert(entry).await.unwrap();
    }
    let entry = l2(1, 3, "forward", &[1]);
    controller.modify(entry.clone()).await.unwrap();
    controller.delete(entry).await.unwrap();
    running.signal(Signal::SIGTERM);
    assert_eq!(running.end().0, Some(0));
    let text = std::fs::read_to_string(directory.path().join("log.txt")).unwrap();
    let messages: Vec<&str> = text
        .lines()
        .map(|line| line.splitn(5, "] ").last().unwrap())
        .collect();
    assert_eq!(
        messages,
        [
            "Entry 0 added to table 'FeaturesIngress.l2'",
            "Entry 1 added to table 'FeaturesIngress.l2'",
            "Modified entry 1 in table 'FeaturesIngress.l2'",
            "Removed entry 1 from table 'FeaturesIngress.l2'",
        ]
    );
}
