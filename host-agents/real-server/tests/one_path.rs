//! Clients of one path, to which all servers' packets are one server's (QDSR, appendix A): programs that others wrote, and a network that loses packets.

#[allow(dead_code)]
mod common;

use std::fs;
use std::path::Path;

use common::client::{Client, all};
use common::{BALANCER, PORT, World, content, run};
use frontage_testkit::privileged;

const PYTHON: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../build/quic-clients/bin/python"
);
const GET_ALL: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../cclb7-quic/tests/clients/get_all.py"
);
const GET_CURL: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../cclb7-quic/tests/clients/get_curl.py"
);
const NGTCP2: &str = "/usr/bin/gtlsclient";

/// Bytes of objects that are under way at once.
const LENGTHS: [usize; 8] = [
    5_000_000, 300_000, 1_000_000, 700_000, 2_000_000, 400_000, 1_500_000, 900_000,
];

fn files() -> Vec<(String, Vec<u8>)> {
    let lengths = LENGTHS.iter().enumerate();
    lengths
        .map(|(i, length)| (i.to_string(), content(i, *length)))
        .collect()
}

/// `command` makes, of the folder for what comes and the objects' URLs, a shell's that downloads `count` objects.
fn download(
    name: &str,
    program: &str,
    count: usize,
    command: impl Fn(&str, &[String]) -> Vec<String>,
) {
    if !privileged() {
        return;
    }
    if !Path::new(program).exists() {
        eprintln!("skipped {name}: apt install ngtcp2-client, and make build/stamps/quic-clients");
        return;
    }
    let files = &files()[..count];
    let world = World::new(name, 2, "round-robin", "", files);
    let folder = world.folder.join("downloads");
    fs::create_dir(&folder).unwrap();
    let url = |(name, _): &(String, Vec<u8>)| format!("https://{BALANCER}:{PORT}/{name}");
    let urls: Vec<_> = files.iter().map(url).collect();
    let command = command(folder.to_str().unwrap(), &urls).join(" ");
    world
        .client
        .sh(&format!("{command} >/tmp/t7.log 2>&1 || true"));
    for (name, content) in files {
        let body = fs::read(folder.join(name)).unwrap_or_default();
        assert!(body == *content, "{name}: {} bytes came", body.len());
    }
    let sent = |server| world.server_metric(server, "body_bytes_total");
    let whole: usize = files.iter().map(|(_, content)| content.len()).sum();
    assert_eq!(sent(0) + sent(1), whole as u64);
    assert_eq!(world.balancer_metric("body_bytes_total"), 0);
    assert!(count == 1 || sent(0) > 0 && sent(1) > 0);
}

#[test]
fn ngtcp2() {
    download("ngtcp2", NGTCP2, LENGTHS.len(), |folder, urls| {
        let command = format!(
            "{NGTCP2} --quiet --exit-on-all-streams-close --download={folder} {BALANCER} {PORT}"
        );
        [&[command], urls].concat()
    });
}

#[test]
fn aioquic() {
    download("aioquic", PYTHON, LENGTHS.len(), |folder, urls| {
        [&[format!("{PYTHON} {GET_ALL} {folder}")], urls].concat()
    });
}

#[test]
fn curl() {
    download("curl", PYTHON, 1, |folder, urls| {
        [&[format!("{PYTHON} {GET_CURL} {folder}/0")], urls].concat()
    });
}

/// Of a hundred packets to the client so many are lost, whoever sends them.
fn loses(name: &str, percent: u32) {
    if !privileged() {
        return;
    }
    let files = files();
    let world = World::new(name, 2, "round-robin", "", &files);
    for host in world.servers.iter().chain([&world.balancer]) {
        // Each by itself, not what was sent in one batch.
        host.sh("ethtool -K eth0 tx-udp-segmentation off");
    }
    world.client.sh(&format!(
        "nft add table inet loss && nft 'add chain inet loss in {{ type filter hook input priority 0; }}' && \
         nft add rule inet loss in udp sport {PORT} numgen random mod 100 '<' {percent} drop"
    ));
    run(&world, async || {
        let client = Client::connect(&world, 1).await;
        for ((name, content), got) in files.iter().zip(all(&client, &files).await) {
            assert!(got == Ok((200, content.clone())), "{name}");
        }
        client.close().await;
    });
    assert_eq!(world.balancer_metric("body_bytes_total"), 0);
}

#[test]
fn one_packet_of_a_hundred_is_lost() {
    loses("loses1", 1);
}

#[test]
fn five_packets_of_a_hundred_are_lost() {
    loses("loses5", 5);
}
