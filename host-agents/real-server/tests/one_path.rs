// SPDX-License-Identifier: Apache-2.0
//! Clients with a single path (QDSR, appendix A): third-party programs, and packet loss.

#[allow(dead_code)]
mod common;

use std::fs;
use std::path::Path;

use common::client::{Client, get_all};
use common::{BALANCER, PORT, Testbed, content, run, two_senders, wait_until};
use frontage_testkit::{privileged, require};

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

/// Sizes in bytes of the objects, which are downloaded concurrently.
const LENGTHS: [usize; 8] = [
    5_000_000, 300_000, 1_000_000, 700_000, 2_000_000, 400_000, 1_500_000, 900_000,
];

fn files() -> Vec<(String, Vec<u8>)> {
    let lengths = LENGTHS.iter().enumerate();
    lengths
        .map(|(i, length)| (i.to_string(), content(i, *length)))
        .collect()
}

/// Download `count` objects with the shell command that `command` returns for the target folder and the objects' URLs.
fn download(
    name: &str,
    program: &str,
    count: usize,
    command: impl Fn(&str, &[String]) -> Vec<String>,
) {
    if !privileged() {
        return;
    }
    let fix = "apt install ngtcp2-client, and make build/stamps/quic-clients";
    if !require(Path::new(program).exists(), program, fix) {
        return;
    }
    let files = &files()[..count];
    let testbed = Testbed::new(name, 2, two_senders(1), "", files);
    let folder = testbed.folder.join("downloads");
    fs::create_dir(&folder).unwrap();
    let url = |(name, _): &(String, Vec<u8>)| format!("https://{BALANCER}:{PORT}/{name}");
    let urls: Vec<_> = files.iter().map(url).collect();
    let command = command(folder.to_str().unwrap(), &urls).join(" ");
    let log = testbed.folder.join("client.log");
    testbed
        .client
        .sh(&format!("{command} >{} 2>&1 || true", log.display()));
    for (name, content) in files {
        let body = fs::read(folder.join(name)).unwrap_or_default();
        assert!(
            body == *content,
            "{name}: {} bytes received: {}",
            body.len(),
            fs::read_to_string(&log).unwrap_or_default()
        );
    }
    let sent = |server| testbed.server_metric(server, "body_bytes_total");
    let total: usize = files.iter().map(|(_, content)| content.len()).sum();
    assert_eq!(sent(0) + sent(1), total as u64);
    assert_eq!(testbed.balancer_metric("body_bytes_total"), 0);
    assert!(count == 1 || sent(0) > 0 && sent(1) > 0);
}

#[test]
fn ngtcp2_downloads_from_real_servers() {
    download("ngtcp2", NGTCP2, LENGTHS.len(), |folder, urls| {
        let command = format!(
            "{NGTCP2} --quiet --exit-on-all-streams-close --download={folder} {BALANCER} {PORT}"
        );
        [&[command], urls].concat()
    });
}

#[test]
fn aioquic_downloads_from_real_servers() {
    download("aioquic", PYTHON, LENGTHS.len(), |folder, urls| {
        [&[format!("{PYTHON} {GET_ALL} {folder}")], urls].concat()
    });
}

#[test]
fn curl_downloads_from_real_servers() {
    download("curl", PYTHON, 1, |folder, urls| {
        [&[format!("{PYTHON} {GET_CURL} {folder}/0")], urls].concat()
    });
}

/// The balancer sends the packet numbers of short responses together with the requests.
#[test]
fn short_responses_rarely_request_packet_numbers() {
    const SHORT_RESPONSES: u64 = 20;
    if !privileged() {
        return;
    }
    let files = [
        ("short".to_owned(), content(1, 3_000)),
        ("long".to_owned(), content(2, 300_000)),
    ];
    let testbed = Testbed::new("short", 1, "round-robin", "", &files);
    let requested = || testbed.server_metric(0, "number_requests_total");
    run(&testbed, async || {
        let client = Client::connect(&testbed, 1).await;
        let get = async |file: &(String, Vec<u8>)| {
            let got = client.get(&file.0).await.unwrap();
            assert!(got == Ok((200, file.1.clone())), "{}", file.0);
        };
        // noq probes the path MTU, and the balancer updates the keys.
        get(&files[1]).await;
        let before = requested();
        for _ in 0..SHORT_RESPONSES {
            get(&files[0]).await;
        }
        let after = requested();
        assert!(
            before > 0 && after - before < SHORT_RESPONSES / 2,
            "{before} {after}"
        );
        client.close().await;
    });
    assert_eq!(testbed.balancer_metric("handoff_local_total"), 0);
}

#[test]
fn one_real_server_answers_concurrent_requests() {
    if !privileged() {
        return;
    }
    let files = files();
    let testbed = Testbed::new("sole", 2, "round-robin", "", &files);
    let answers = || {
        let mut answers = [0, 1].map(|server| testbed.completed_responses(server));
        answers.sort_unstable();
        answers
    };
    let all = LENGTHS.len() as u64;
    run(&testbed, async || {
        let client = Client::connect(&testbed, 1).await;
        // Once no request is left, it is the other server's turn.
        for round in 0..2 {
            for ((name, content), got) in files.iter().zip(get_all(&client, &files).await) {
                assert!(got == Ok((200, content.clone())), "{name}");
            }
            wait_until("all responses are complete", || {
                answers().iter().sum::<u64>() == (round + 1) * all
            })
            .await;
            assert_eq!(answers(), [round * all, all]);
        }
        client.close().await;
    });
}

/// Download objects while `loss_percent` of all packets to the client are lost.
fn download_with_loss(name: &str, loss_percent: u32) {
    if !privileged() {
        return;
    }
    let files = files();
    let testbed = Testbed::new(name, 2, two_senders(1), "", &files);
    for host in testbed.servers.iter().chain([&testbed.balancer]) {
        // Drop single packets, not whole batches.
        host.sh("ethtool -K eth0 tx-udp-segmentation off");
    }
    testbed.client.sh(&format!(
        "nft add table inet loss && nft 'add chain inet loss in {{ type filter hook input priority 0; }}' && \
         nft add rule inet loss in udp sport {PORT} numgen random mod 100 '<' {loss_percent} drop"
    ));
    run(&testbed, async || {
        let client = Client::connect(&testbed, 1).await;
        for ((name, content), got) in files.iter().zip(get_all(&client, &files).await) {
            assert!(got == Ok((200, content.clone())), "{name}");
        }
        client.close().await;
    });
    assert_eq!(testbed.balancer_metric("body_bytes_total"), 0);
}

#[test]
fn single_path_downloads_survive_1_percent_loss() {
    download_with_loss("loses1", 1);
}

#[test]
fn single_path_downloads_survive_5_percent_loss() {
    download_with_loss("loses5", 5);
}
