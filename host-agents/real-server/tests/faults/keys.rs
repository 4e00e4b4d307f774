//! Key updates, while streams come from real servers whose congestion control is BBR.

use frontage_lab::privileged;

use crate::common::client::Client;
use crate::common::{World, content, run, until};

#[test]
fn keys_are_updated_while_real_servers_send() {
    if !privileged() {
        return;
    }
    let files: Vec<_> = (0..4)
        .map(|i| (format!("{i}"), content(i, 2_000_000)))
        .collect();
    let world = World::of("keys", 2, "round-robin", "", "congestion = 'bbr'", &files);
    run(&world, async || {
        let client = Client::connect(&world, 3).await;
        for round in 0..3 {
            let asked: Vec<_> = files.iter().map(|(name, _)| client.get(name)).collect();
            // Some are on their way, in each round.
            let sent = || (0..2).map(|i| world.server_metric(i, "body_bytes_total"));
            let before = round * 8_000_000;
            until("they send", || sent().sum::<u64>() > before + 500_000).await;
            client.quic.force_key_update();
            for ((name, content), got) in files.iter().zip(asked) {
                assert!(got.await.unwrap() == Ok((200, content.clone())), "{name}");
            }
        }
        assert!(client.quic.close_reason().is_none());
        client.close().await;
    });
    assert!(
        (0..2).all(|i| world.answers(i) > 0 && world.server_metric(i, "bad_feedback_total") == 0)
    );
    assert_eq!(world.balancer_metric("handoff_kept_total"), 0);
}
