// SPDX-License-Identifier: Apache-2.0
//! The agent between real kernels: a server that reports through `libfrontage_cc`, and unmodified clients.

mod common;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::time::Duration;

use common::{SERVER, SERVER_V6, World, privileged, sh, wait_for};
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

fn served(offloads: bool) -> World {
    let mut world = World::new(offloads);
    world.attach(&[PORT]);
    start(&mut world);
    world
}

fn start(world: &mut World) {
    let (library, port) = (library(), PORT.to_string());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/send_cc_server.py");
    world.serve(PORT, &["python3", script, library.to_str().unwrap(), &port]);
}

fn connect(world: &World) -> TcpStream {
    connect_to(world, SERVER.into())
}

fn connect_to(world: &World, server: IpAddr) -> TcpStream {
    world.in_client(|| {
        let address = SocketAddr::from((server, PORT));
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))
            .expect("the server answers");
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

/// Makes the close of `stream` a reset.
fn reset(stream: TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: the option's value is a `linger` of that size.
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

/// A counter of the kernel in network namespace `namespace`.
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
        let world = served(offloads);
        let mut streams: Vec<_> = (0..12).map(|_| connect(&world)).collect();
        for stream in &mut streams {
            request(stream, "sized", LONG);
            receive(stream, SHORT);
        }
        assert_eq!(world.loads(PORT), (12, 12));
        let rest = streams.split_off(6);
        // Half are aborted half-way: three reset, three closed with data unread.
        for (i, mut stream) in streams.into_iter().enumerate() {
            receive(&mut stream, LONG / 2);
            if i % 2 == 0 {
                reset(stream);
            }
        }
        wait_for("aborted transfers to leave", || world.loads(PORT) == (6, 6));
        for mut stream in rest {
            receive(&mut stream, LONG - SHORT);
            // The connection lives on; its response does not count any more.
            request(&mut stream, "sized", SHORT);
            receive(&mut stream, SHORT);
        }
        wait_for("completed transfers to leave", || {
            world.loads(PORT) == (0, 0)
        });
        wait_for("connections to end", || world.state().flows().is_empty());
        // The client has judged every TSval of ours, the server every TSecr that was restored.
        assert_eq!(kernel_counter(&world.client(), "TcpExtPAWSEstab"), 0);
        assert_eq!(kernel_counter(&world.server(), "TcpExtTSEcrRejected"), 0);
        // Of what was sent twice, as on a busy machine, an echo cannot always be told.
        let again = kernel_counter(&world.server(), "TcpRetransSegs");
        let zeroed = world.packets("echo_zeroed");
        assert!(zeroed <= again, "{zeroed} zeroed, {again} sent again");
        assert_eq!(world.packets("malformed"), 0);
    }
}

#[test]
fn responses_in_a_row_count_one_by_one() {
    if !privileged() {
        return;
    }
    let world = served(false);
    let mut stream = connect(&world);
    for _ in 0..3 {
        request(&mut stream, "sized", LONG);
    }
    receive(&mut stream, SHORT);
    // The server sends one after the other, so only the first has been reported yet.
    assert_eq!(world.loads(PORT), (1, 1));
    for kind in ["estimated", "unknown"] {
        let mut stream = connect(&world);
        request(&mut stream, kind, LONG);
        receive(&mut stream, LONG / 2);
        assert_eq!(world.loads(PORT), (2, 2), "{kind}");
        receive(&mut stream, LONG / 2);
        wait_for("an open response to end", || world.loads(PORT) == (1, 1));
    }
    receive(&mut stream, 3 * LONG - SHORT);
    wait_for("the last to end", || world.loads(PORT) == (0, 0));
}

#[test]
fn many_short_responses_leave_no_residue() {
    if !privileged() {
        return;
    }
    let world = served(true);
    for i in 0..100 {
        let server = if i % 2 == 0 {
            SERVER.into()
        } else {
            SERVER_V6.into()
        };
        let mut stream = connect_to(&world, server);
        for kind in ["sized", "estimated", "unknown", "sized"] {
            request(&mut stream, kind, 1 + i * 997);
            receive(&mut stream, 1 + i * 997);
        }
    }
    wait_for("loads to be zero", || world.loads(PORT) == (0, 0));
    wait_for("connections to end", || world.state().flows().is_empty());
    assert_eq!(world.packets("egress_unknown_connection"), 0);
}

#[test]
fn an_agent_that_comes_again_adopts_what_goes_on() {
    if !privileged() {
        return;
    }
    let world = served(false);
    let mut stream = connect(&world);
    request(&mut stream, "sized", LONG);
    receive(&mut stream, SHORT);
    assert_eq!(world.attach(&[PORT, 9000]), Attached::Adopted);
    assert_eq!(world.loads(PORT), (1, 1));
    assert_eq!(world.loads(9000), (0, 0));
    receive(&mut stream, LONG - SHORT);
    wait_for("the response to end", || world.loads(PORT) == (0, 0));
}

#[test]
fn a_connection_older_than_the_agent_goes_on_as_it_was() {
    if !privileged() {
        return;
    }
    let mut world = World::new(false);
    start(&mut world);
    let mut stream = connect(&world);
    // Nobody takes the report yet; the server serves all the same.
    request(&mut stream, "sized", SHORT);
    receive(&mut stream, SHORT);
    world.attach(&[PORT]);
    request(&mut stream, "sized", SHORT);
    receive(&mut stream, SHORT);
    assert!(world.packets("egress_unknown_connection") > 0);
    assert_eq!(world.packets("cookie_written"), 0);
    let mut fresh = connect(&world);
    request(&mut fresh, "sized", SHORT);
    receive(&mut fresh, SHORT);
    assert!(world.packets("cookie_written") > 0);
}

#[test]
fn syn_cookies_get_their_options_back() {
    if !privileged() {
        return;
    }
    let world = served(false);
    // 2: every handshake is by SYN cookie, whose options travel in the timestamp.
    sh(&format!(
        "ip netns exec {} sysctl -qw net.ipv4.tcp_syncookies=2",
        world.server()
    ));
    let mut stream = connect(&world);
    request(&mut stream, "sized", LONG);
    receive(&mut stream, SHORT);
    let sockets = sh(&format!(
        "ip netns exec {} ss -tinH sport = :{PORT}",
        world.server()
    ));
    assert!(kernel_counter(&world.server(), "TcpExtSyncookiesRecv") > 0);
    // The first number is the client's, which the kernel knows from the echo alone.
    assert!(
        sockets.contains("wscale:") && !sockets.contains("wscale:0,"),
        "{sockets}"
    );
    receive(&mut stream, LONG - SHORT);
    wait_for("the response to end", || world.loads(PORT) == (0, 0));
}

#[test]
fn a_client_without_timestamps_is_served_and_counted() {
    if !privileged() {
        return;
    }
    let world = served(false);
    sh(&format!(
        "ip netns exec {} sysctl -qw net.ipv4.tcp_timestamps=0",
        world.client()
    ));
    let mut stream = connect(&world);
    request(&mut stream, "sized", LONG);
    receive(&mut stream, SHORT);
    assert_eq!(world.loads(PORT), (1, 1));
    receive(&mut stream, LONG - SHORT);
    wait_for("the response to end", || world.loads(PORT) == (0, 0));
    assert!(world.packets("egress_no_timestamp") > 0);
}

/// Longer than 32.8 s, at which a cookie in the upper half would have made the clock look backwards.
#[test]
#[ignore = "takes 40 s"]
fn an_idle_connection_wakes_up() {
    if !privileged() {
        return;
    }
    let world = served(false);
    let mut stream = connect(&world);
    for pause in [Duration::from_secs(40), Duration::ZERO] {
        request(&mut stream, "sized", SHORT);
        receive(&mut stream, SHORT);
        std::thread::sleep(pause);
    }
    assert_eq!(kernel_counter(&world.client(), "TcpExtPAWSEstab"), 0);
}
