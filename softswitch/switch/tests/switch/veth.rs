// SPDX-License-Identifier: Apache-2.0
//! The program between veth pairs, in its own network namespaces.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::common::features::{self, l2};
use crate::common::{Controller, TEST_TIMEOUT};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use nix::unistd::Pid;
use softswitch::proto::p4::v1::p4_runtime_client::P4RuntimeClient;
use test_requirements::privileged;
use tokio::sync::{Mutex, MutexGuard};

const A: &str = "10.1.0.1";
const B: &str = "10.1.0.2";

/// Two hosts and a switch with ports 1 and 2 between them.
struct Testbed {
    name: String,
    switch: Child,
    controller: Controller,
    _alone: MutexGuard<'static, ()>,
}

fn ip(args: &str) {
    let output = Command::new("ip")
        .args(args.split_whitespace())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "ip {args}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

impl Testbed {
    /// Creates the testbed; returns `None` if it is skipped.
    async fn create(links: &[&str]) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // One testbed at a time, so that tests do not compete for processors.
        static ALONE: Mutex<()> = Mutex::const_new(());
        if !privileged() {
            return None;
        }
        let alone = ALONE.lock().await;
        let name = format!(
            "swt{}n{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        for part in ["s", "a", "b"] {
            ip(&format!("netns add {name}{part}"));
        }
        for (part, port, address, mac) in [
            ("a", 1, A, "02:00:00:00:00:01"),
            ("b", 2, B, "02:00:00:00:00:02"),
        ] {
            ip(&format!(
                "-n {name}s link add p{port} type veth peer name e0 netns {name}{part}"
            ));
            ip(&format!("-n {name}s link set p{port} up"));
            ip(&format!("-n {name}{part} link set e0 address {mac} up"));
            ip(&format!("-n {name}{part} addr add {address}/24 dev e0"));
        }
        ip(&format!(
            "-n {name}a neigh add {B} lladdr 02:00:00:00:00:02 dev e0"
        ));
        ip(&format!(
            "-n {name}b neigh add {A} lladdr 02:00:00:00:00:01 dev e0"
        ));
        let socket = std::env::temp_dir().join(format!("{name}.sock"));
        let address = format!("unix:{}", socket.display());
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            &format!("{name}s"),
            env!("CARGO_BIN_EXE_softswitch"),
        ]);
        command.args([
            "--no-p4",
            "--device-id",
            "1",
            "-i",
            "1@p1",
            "-i",
            "2@p2",
            "--log-level",
            "info",
        ]);
        for link in links {
            command.args(["--link", link]);
        }
        command.args(["--", "--grpc-server-addr", &address]);
        let mut switch = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let ready = BufReader::new(switch.stdout.take().unwrap()).lines();
        assert!(ready.map_while(Result::ok).any(|line| line == "ready"));
        let client = P4RuntimeClient::connect(address).await.unwrap();
        let mut controller = Controller::open(client).await;
        controller.arbitrate(1).await;
        controller.set_pipeline(features::config()).await.unwrap();
        for (from, to) in [(1, 2), (2, 1)] {
            let rule = l2(from, 0x0200_0000_0000 + to, "forward", &[to]);
            controller.insert(rule).await.unwrap();
        }
        Some(Self {
            name,
            switch,
            controller,
            _alone: alone,
        })
    }

    /// Runs a function in a host's namespace; its sockets stay in the namespace.
    fn within<R: Send>(&self, host: &str, f: impl FnOnce() -> R + Send) -> R {
        let path = format!("/run/netns/{}{host}", self.name);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                setns(std::fs::File::open(path).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
                f()
            });
            thread.join().unwrap()
        })
    }

    /// Stops the switch and returns its output.
    fn stop(&mut self) -> String {
        kill(Pid::from_raw(self.switch.id() as i32), Signal::SIGTERM).unwrap();
        let mut stderr = String::new();
        self.switch
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        assert!(self.switch.wait().unwrap().success(), "{stderr}");
        stderr
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        // The veths disappear with the switch and the namespaces.
        let _ = self.switch.kill();
        let _ = self.switch.wait();
        for part in ["s", "a", "b"] {
            ip(&format!("netns del {}{part}", self.name));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tcp_works_with_all_offloads_on() {
    let Some(mut testbed) = Testbed::create(&[]).await else {
        return;
    };
    let listener = testbed
        .within("b", || TcpListener::bind((B, 5001)))
        .unwrap();
    let data: Vec<u8> = (0..20_000_000u32).map(|n| (n / 7) as u8).collect();
    let expected = data.clone();
    let receiver = std::thread::spawn(move || {
        let mut received = Vec::new();
        listener
            .accept()
            .unwrap()
            .0
            .read_to_end(&mut received)
            .unwrap();
        assert!(received == expected, "received data differ from sent data");
    });
    let mut sender = testbed
        .within("a", || TcpStream::connect((B, 5001)))
        .unwrap();
    sender.write_all(&data).unwrap();
    drop(sender);
    receiver.join().unwrap();
    let summary = testbed.stop();
    assert!(!summary.contains("too_long"), "{summary}");
}

#[tokio::test(flavor = "multi_thread")]
async fn link_achieves_its_rate_within_one_percent() {
    const RATE: f64 = 10e6;
    // UDP, IPv4 and Ethernet headers around each datagram.
    const FRAME: usize = 1400 + 8 + 20 + 14;
    // Three seconds of traffic, queued at once: a delayed sender does not leave gaps, and delays on a busy machine are
    // small in comparison.
    const FRAMES: usize = 2600;
    let Some(testbed) = Testbed::create(&["2:rate=10mbit,queue=4MB,delay=2ms"]).await else {
        return;
    };
    let receiver = testbed.within("b", || UdpSocket::bind((B, 5000))).unwrap();
    let sender = testbed.within("a", || UdpSocket::bind((A, 0))).unwrap();
    receiver.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    // Frames that arrive while this process does not run must not be lost.
    setsockopt(&receiver, RcvBufForce, &(16 << 20)).unwrap();
    let begin = Instant::now();
    for sent in 0..FRAMES {
        sender.send_to(&[0; 1400], (B, 5000)).unwrap();
        if sent % 100 == 0 {
            // Frames that the switch has not yet read must fit into its ring.
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let mut buffer = [0; 2000];
    for _ in 0..FRAMES {
        receiver.recv(&mut buffer).unwrap();
    }
    let rate = (FRAMES * FRAME * 8) as f64 / begin.elapsed().as_secs_f64();
    eprintln!("achieved {:.3} Mbit/s", rate / 1e6);
    assert!((rate / RATE - 1.0).abs() < 0.01, "{rate} bit/s");
}

#[tokio::test(flavor = "multi_thread")]
async fn switch_reports_and_survives_deleted_interface() {
    let Some(mut testbed) = Testbed::create(&[]).await else {
        return;
    };
    let name = testbed.name.clone();
    ip(&format!("-n {name}s link del p2"));
    let sender = testbed.within("a", || UdpSocket::bind((A, 0))).unwrap();
    for _ in 0..10 {
        sender.send_to(b"into the void", (B, 5000)).unwrap();
    }
    testbed
        .controller
        .insert(l2(1, 77, "forward", &[1]))
        .await
        .unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let output = testbed.stop();
    assert!(
        output.contains("port 2 (p2): the interface is gone"),
        "{output}"
    );
    assert!(output.contains("dropped by port_down 10"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn interface_works_after_down_and_up() {
    let Some(mut testbed) = Testbed::create(&[]).await else {
        return;
    };
    let name = testbed.name.clone();
    let receiver = testbed.within("b", || UdpSocket::bind((B, 5000))).unwrap();
    let sender = testbed.within("a", || UdpSocket::bind((A, 0))).unwrap();
    ip(&format!("-n {name}s link set p2 down"));
    sender.send_to(b"lost", (B, 5000)).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    ip(&format!("-n {name}s link set p2 up"));
    receiver
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let mut buffer = [0; 100];
    let begin = Instant::now();
    loop {
        sender.send_to(b"found", (B, 5000)).unwrap();
        if let Ok(n) = receiver.recv(&mut buffer) {
            assert_eq!(&buffer[..n], b"found");
            break;
        }
        assert!(
            begin.elapsed() < TEST_TIMEOUT,
            "no frame arrives after the interface is up"
        );
    }
    testbed.stop();
}
