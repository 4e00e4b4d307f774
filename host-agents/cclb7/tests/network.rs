// SPDX-License-Identifier: Apache-2.0
//! The agent with real kernels: a server that reports through `libfrontage_cc`, and unmodified clients.

mod common;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::time::Duration;

use common::{SERVER, SERVER_V6, Testbed, privileged, sh, wait_for};
use frontage_cclb7::agent::Attached;

const PORT: u16 = 8000;
const LONG: usize = 60_000_000;
const SHORT: usize = 20_000;

fn library() -> PathBuf {
    let build = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("send_cc");
    sh(&format!(
        "make -s -C {} lib BUILD={}",
        env!("CARGO_MANIFEST_DIR"),
        build.display()
    ));
    build.join("libfrontage_cc.so")
}

fn served(offloads: bool) -> Testbed {
    let mut testbed = Testbed::new(offloads);
    testbed.attach(&[PORT]);
    start(&mut testbed);
    testbed
}

fn start(testbed: &mut Testbed) {
    let (library, port) = (library(), PORT.to_string());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/send_cc_server.py");
    testbed.serve(PORT, &["python3", script, library.to_str().unwrap(), &port]);
}

fn connect(testbed: &Testbed) -> TcpStream {
    connect_to(testbed, SERVER.into())
}

fn connect_to(testbed: &Testbed, server: IpAddr) -> TcpStream {
    testbed.in_client(|| {
        let address = SocketAddr::from((server, PORT));
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))
            .expect("the server accepts the connection");
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream
    })
}

fn request(stream: &mut TcpStream, kind: &str, length: usize) {
    writeln!(stream, "{kind} {length}").unwrap();
}

fn receive(stream: &mut TcpStream, mut length: usize) {
    let mut buffer = vec![0; 1 << 16];
    while length > 0 {
        let part = buffer.len().min(length);
        let n = stream.read(&mut buffer[..part]).expect("no stall");
        assert!(n > 0, "closed {length} bytes early");
        length -= n;
    }
}

/// Close `stream` with a reset.
fn reset(stream: TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: the option's value is a `linger` with this size.
    let result = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of_val(&linger) as u32,
        )
    };
    assert_eq!(result, 0);
}

/// Return a counter of the kernel in network namespace `namespace`.
fn kernel_counter(namespace: &str, name: &str) -> u64 {
    let text = sh(&format!("ip netns exec {namespace} nstat -asz {name}"));
    let line = text
        .lines()
        .find(|line| line.starts_with(name))
        .unwrap_or("0 0");
    line.split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

#[test]
fn loads_rise_and_fall_with_completed_reset_and_abandoned_transfers() {
    if !privileged() {
        return;
    }
    for offloads in [false, true] {
        let testbed = served(offloads);
        let mut streams: Vec<_> = (0..12).map(|_| connect(&testbed)).collect();
        for stream in &mut streams {
            request(stream, "sized", LONG);
            receive(stream, SHORT);
        }
        assert_eq!(testbed.loads(PORT), (12, 12));
        let rest = streams.split_off(6);
        // Half of the transfers are aborted: three are reset, three closed with unread data.
        for (i, mut stream) in streams.into_iter().enumerate() {
            receive(&mut stream, LONG / 2);
            if i % 2 == 0 {
                reset(stream);
            }
        }
        wait_for("aborted transfers to leave", || {
            testbed.loads(PORT) == (6, 6)
        });
        for mut stream in rest {
            receive(&mut stream, LONG - SHORT);
            // The connection continues, but its response no longer counts.
            request(&mut stream, "sized", SHORT);
            receive(&mut stream, SHORT);
        }
        wait_for("completed transfers to leave", || {
            testbed.loads(PORT) == (0, 0)
        });
        wait_for("connections to end", || testbed.state().flows().is_empty());
        // The client's kernel has checked every TSval, and the server's kernel every restored TSecr.
        assert_eq!(kernel_counter(&testbed.client(), "TcpExtPAWSEstab"), 0);
        assert_eq!(kernel_counter(&testbed.server(), "TcpExtTSEcrRejected"), 0);
        // The echo of a retransmitted segment is not always known; a busy machine retransmits.
        let again = kernel_counter(&testbed.server(), "TcpRetransSegs");
        let zeroed = testbed.packets("echo_zeroed");
        assert!(zeroed <= again, "{zeroed} zeroed, {again} sent again");
        assert_eq!(testbed.packets("malformed"), 0);
    }
}

#[test]
fn device_without_ethernet_header_carries_cookies() {
    if !privileged() {
        return;
    }
    let mut testbed = Testbed::over_tun();
    testbed.attach(&[PORT]);
    start(&mut testbed);
    for server in [IpAddr::V4(SERVER), SERVER_V6.into()] {
        let (written, restored) = (
            testbed.packets("cookie_written"),
            testbed.packets("echo_restored"),
        );
        let mut stream = connect_to(&testbed, server);
        request(&mut stream, "sized", LONG);
        receive(&mut stream, SHORT);
        assert_eq!(testbed.loads(PORT), (1, 1));
        receive(&mut stream, LONG - SHORT);
        wait_for("the response to end", || testbed.loads(PORT) == (0, 0));
        assert!(testbed.packets("cookie_written") > written + 1000);
        assert!(testbed.packets("echo_restored") > restored + 100);
    }
    assert_eq!(kernel_counter(&testbed.client(), "TcpExtPAWSEstab"), 0);
    assert_eq!(kernel_counter(&testbed.server(), "TcpExtTSEcrRejected"), 0);
    for reason in ["malformed", "egress_unknown_connection"] {
        assert_eq!(testbed.packets(reason), 0, "{reason}");
    }
}

#[test]
fn consecutive_responses_are_counted_individually() {
    if !privileged() {
        return;
    }
    let testbed = served(false);
    let mut stream = connect(&testbed);
    for _ in 0..3 {
        request(&mut stream, "sized", LONG);
    }
    receive(&mut stream, SHORT);
    // The server sends one after the other, so only the first has been reported so far.
    assert_eq!(testbed.loads(PORT), (1, 1));
    for kind in ["estimated", "unknown"] {
        let mut stream = connect(&testbed);
        request(&mut stream, kind, LONG);
        receive(&mut stream, LONG / 2);
        assert_eq!(testbed.loads(PORT), (2, 2), "{kind}");
        receive(&mut stream, LONG / 2);
        wait_for("an open response to end", || testbed.loads(PORT) == (1, 1));
    }
    receive(&mut stream, 3 * LONG - SHORT);
    wait_for("the last to end", || testbed.loads(PORT) == (0, 0));
}

#[test]
fn many_short_responses_leave_no_load() {
    if !privileged() {
        return;
    }
    let testbed = served(true);
    for i in 0..100 {
        let server = if i % 2 == 0 {
            SERVER.into()
        } else {
            SERVER_V6.into()
        };
        let mut stream = connect_to(&testbed, server);
        for kind in ["sized", "estimated", "unknown", "sized"] {
            request(&mut stream, kind, 1 + i * 997);
            receive(&mut stream, 1 + i * 997);
        }
    }
    wait_for("loads to be zero", || testbed.loads(PORT) == (0, 0));
    wait_for("connections to end", || testbed.state().flows().is_empty());
    assert_eq!(testbed.packets("egress_unknown_connection"), 0);
}

#[test]
fn restarted_agent_adopts_running_flows() {
    if !privileged() {
        return;
    }
    let testbed = served(false);
    let mut stream = connect(&testbed);
    request(&mut stream, "sized", LONG);
    receive(&mut stream, SHORT);
    assert_eq!(testbed.attach(&[PORT, 9000]), Attached::Adopted);
    assert_eq!(testbed.loads(PORT), (1, 1));
    assert_eq!(testbed.loads(9000), (0, 0));
    receive(&mut stream, LONG - SHORT);
    wait_for("the response to end", || testbed.loads(PORT) == (0, 0));
}

#[test]
fn connection_older_than_the_agent_stays_without_cookies() {
    if !privileged() {
        return;
    }
    let mut testbed = Testbed::new(false);
    start(&mut testbed);
    let mut stream = connect(&testbed);
    // No agent receives the report yet, and the server serves nevertheless.
    request(&mut stream, "sized", SHORT);
    receive(&mut stream, SHORT);
    testbed.attach(&[PORT]);
    request(&mut stream, "sized", SHORT);
    receive(&mut stream, SHORT);
    assert!(testbed.packets("egress_unknown_connection") > 0);
    assert_eq!(testbed.packets("cookie_written"), 0);
    let mut fresh = connect(&testbed);
    request(&mut fresh, "sized", SHORT);
    receive(&mut fresh, SHORT);
    assert!(testbed.packets("cookie_written") > 0);
}

#[test]
fn handshake_with_syn_cookies_keeps_its_options() {
    if !privileged() {
        return;
    }
    let testbed = served(false);
    // 2: every handshake uses a SYN cookie, whose options are in the timestamp.
    sh(&format!(
        "ip netns exec {} sysctl -qw net.ipv4.tcp_syncookies=2",
        testbed.server()
    ));
    let mut stream = connect(&testbed);
    request(&mut stream, "sized", LONG);
    receive(&mut stream, SHORT);
    let sockets = sh(&format!(
        "ip netns exec {} ss -tinH sport = :{PORT}",
        testbed.server()
    ));
    assert!(kernel_counter(&testbed.server(), "TcpExtSyncookiesRecv") > 0);
    // The first number is the client's, which the kernel learns from the echo only.
    assert!(
        sockets.contains("wscale:") && !sockets.contains("wscale:0,"),
        "{sockets}"
    );
    receive(&mut stream, LONG - SHORT);
    wait_for("the response to end", || testbed.loads(PORT) == (0, 0));
}

#[test]
fn client_without_timestamps_is_served_and_counted() {
    if !privileged() {
        return;
    }
    let testbed = served(false);
    sh(&format!(
        "ip netns exec {} sysctl -qw net.ipv4.tcp_timestamps=0",
        testbed.client()
    ));
    let mut stream = connect(&testbed);
    request(&mut stream, "sized", LONG);
    receive(&mut stream, SHORT);
    assert_eq!(testbed.loads(PORT), (1, 1));
    receive(&mut stream, LONG - SHORT);
    wait_for("the response to end", || testbed.loads(PORT) == (0, 0));
    assert!(testbed.packets("egress_no_timestamp") > 0);
}

/// The idle time exceeds 32.8 s, after which a cookie in the upper half of TSval would make the clock run backwards.
#[test]
#[ignore = "takes 40 s"]
fn connection_resumes_after_a_long_idle_time() {
    if !privileged() {
        return;
    }
    let testbed = served(false);
    let mut stream = connect(&testbed);
    for pause in [Duration::from_secs(40), Duration::ZERO] {
        request(&mut stream, "sized", SHORT);
        receive(&mut stream, SHORT);
        std::thread::sleep(pause);
    }
    assert_eq!(kernel_counter(&testbed.client(), "TcpExtPAWSEstab"), 0);
}
