// SPDX-License-Identifier: Apache-2.0
//! Direct responses of real servers to a balancer's clients, with the real programs, an emulated network and an
//! unmodified client.

#[allow(dead_code)]
mod common;

use std::time::Instant;

use common::client::{Client, RESPONSE_TIMEOUT, get_all, start_on_both_servers};
use common::{Testbed, content, long_and_short, run, two_senders, wait_until};
use frontage_testkit::privileged;

/// Files from 1 kB to 5 MB, most of them small.
fn files(count: usize) -> Vec<(String, Vec<u8>)> {
    let length = |i: usize| {
        let share = i as f64 / (count - 1) as f64;
        (1000. * 5000_f64.powf(share.powi(4))) as usize
    };
    (0..count)
        .map(|i| (format!("{i}"), content(i, length(i))))
        .collect()
}

/// Download 200 objects, and check that the balancer does not send any of them.
fn download_many_objects(name: &str, paths: u32) {
    if !privileged() {
        return;
    }
    let files = files(200);
    let testbed = Testbed::new(name, 2, two_senders(paths), "", &files);
    run(&testbed, async || {
        let client = Client::connect(&testbed, paths).await;
        let got = get_all(&client, &files).await;
        for ((name, content), got) in files.iter().zip(got) {
            let (status, body) = got.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(status, 200, "{name}");
            assert!(body == *content, "{name}: other bytes");
        }
        // Wait before closing, because a closed client does not acknowledge the last packets.
        wait_until("all responses are counted", || {
            direct_responses(&testbed) == 200
        })
        .await;
        client.close().await;
    });
    for i in 0..2 {
        assert!(
            testbed.completed_responses(i) > 0 && testbed.server_metric(i, "body_bytes_total") > 0
        );
    }
    assert_eq!(testbed.balancer_metric("body_bytes_total"), 0);
}

#[test]
fn many_objects_arrive_from_several_servers() {
    download_many_objects("many", 3);
}

/// A client with a single path receives packets of all servers on it.
#[test]
fn many_objects_arrive_on_single_path() {
    download_many_objects("one", 1);
}

fn direct_responses(testbed: &Testbed) -> u64 {
    (0..2)
        .map(|server| testbed.completed_responses(server))
        .sum()
}

/// The balancer itself responds if the response is small.
#[test]
fn rejected_requests_are_proxied() {
    if !privileged() {
        return;
    }
    let files = files(20);
    let testbed = Testbed::new("kept", 1, "consistent-hash", "min_size = '20kB'", &files);
    for paths in [1, 2] {
        run(&testbed, async || {
            let client = Client::connect(&testbed, paths).await;
            for ((name, content), got) in files.iter().zip(get_all(&client, &files).await) {
                assert!(
                    got == Ok((200, content.clone())),
                    "{name} over {paths} paths"
                );
            }
            client.close().await;
        });
    }
    let small = files
        .iter()
        .filter(|(_, content)| content.len() < 20_000)
        .count() as u64;
    let local = |reason| testbed.balancer_metric(&format!("handoff_local_total{reason}"));
    let by_reason = [
        "{reason=\"large\"}",
        "{reason=\"unavailable\"}",
        "{reason=\"rejected\"}",
    ];
    assert_eq!(by_reason.map(local), [0, 0, 2 * small]);
    let rejected = "real_server_rejected_total{server=\"rs0.test\",reason=\"small\"}";
    assert_eq!(testbed.balancer_metric(rejected), 2 * small);
}

/// The balancer completes the response of a dead real server; the connection and its other streams continue.
fn kill_one_server(name: &str, paths: u32) {
    if !privileged() {
        return;
    }
    let files = long_and_short();
    let testbed = Testbed::new(name, 2, two_senders(paths), "", &files);
    run(&testbed, async || {
        let client = Client::connect(&testbed, paths).await;
        let long = start_on_both_servers(&testbed, &client).await;
        // More than noq buffers, so the client has acknowledged a part.
        wait_until("the response is under way", || {
            testbed.server_metric(0, "body_bytes_total") > 20_000_000
        })
        .await;
        let killed = Instant::now();
        // SAFETY: the namespace started this process and has not waited for it.
        unsafe { libc::kill(testbed.processes[0] as i32, libc::SIGKILL) };
        for response in long {
            let response = tokio::time::timeout(RESPONSE_TIMEOUT, response).await;
            let got = response.expect("the response ends").unwrap();
            assert!(got == Ok((200, files[0].1.clone())));
        }
        println!("both responses are complete after {:?}", killed.elapsed());
        let got = client.get("short").await.unwrap();
        assert!(got == Ok((200, files[1].1.clone())));
        client.close().await;
    });
    assert_eq!(
        [0, 1].map(|i| testbed.metric_for(i, "resumed_total")),
        [1, 0]
    );
    assert!(testbed.metric_for(0, "skipped_bytes_total") > 0);
}

#[test]
fn response_of_dead_server_with_path_is_resumed() {
    kill_one_server("dies", 3);
}

#[test]
fn response_of_dead_server_of_single_path_client_is_resumed() {
    kill_one_server("dies-one", 1);
}

/// No other server has the same representation, so the stream is reset.
#[test]
fn response_is_reset_if_the_entity_tag_differs() {
    if !privileged() {
        return;
    }
    let files = long_and_short();
    let testbed = Testbed::new("dies-changed", 2, "round-robin", "", &files);
    run(&testbed, async || {
        let client = Client::connect(&testbed, 3).await;
        let long = start_on_both_servers(&testbed, &client).await;
        // The real servers that send keep the old file open.
        let file = testbed.folder.join("files/long2");
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, content(3, 60_000_001)).unwrap();
        // SAFETY: the namespace started this process and has not waited for it.
        unsafe { libc::kill(testbed.processes[0] as i32, libc::SIGKILL) };
        let mut errors = Vec::new();
        for response in long {
            let response = tokio::time::timeout(RESPONSE_TIMEOUT, response).await;
            match response.expect("the response ends").unwrap() {
                Ok(whole) => assert!(whole == (200, files[0].1.clone())),
                Err(error) => errors.push(error),
            }
        }
        assert_eq!(errors.len(), 1, "only the dead server's response fails");
        assert!(errors[0].contains("H3_INTERNAL_ERROR"), "{errors:?}");
        let got = client.get("short").await.unwrap();
        assert!(got == Ok((200, files[1].1.clone())));
        client.close().await;
    });
    assert_eq!(testbed.metric_for(0, "resumed_total"), 0);
    assert_eq!(testbed.metric_for(0, "aborted_total"), 1);
}
