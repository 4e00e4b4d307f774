//! More real servers than paths.

use frontage_testkit::privileged;

use crate::common::client::Client;
use crate::common::{World, content, run, until};

/// Each gets the path for a while; whom it was taken from gave it back, so that its packet numbers go on.
#[test]
fn real_servers_take_turns_with_a_path() {
    if !privileged() {
        return;
    }
    let files = [("file".to_owned(), content(1, 300_000))];
    let world = World::new("turns", 3, "round-robin", "", &files);
    let all = |name| {
        (0..3)
            .map(|server| world.says_of(server, name))
            .sum::<u64>()
    };
    run(&world, async || {
        let client = Client::connect(&world, 2).await;
        for done in 1..=12 {
            let got = client.get("file").await.unwrap();
            assert!(got == Ok((200, files[0].1.clone())));
            // Until then the path is in use.
            until("the answer is counted", || {
                all("answers_total") + world.balancer_metric("handoff_local_total") == done
            })
            .await;
        }
        assert!(client.quic.close_reason().is_none());
        client.close().await;
    });
    for server in 0..3 {
        assert!(
            world.answers(server) >= 3,
            "{server}: {}",
            world.answers(server)
        );
    }
    assert_eq!(all("aborted_total"), 0);
    assert!(all("returned_paths_total") >= 9);
}
