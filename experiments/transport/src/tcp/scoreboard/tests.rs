// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Send(u64),
    Sack(u64, u64),
    Acknowledge(u64),
    Retransmit(bool),
    LoseFirst,
    LoseAll,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1u64..=10).prop_map(Step::Send),
        4 => (0u64..300, 1u64..60).prop_map(|(from, length)| Step::Sack(from, length)),
        2 => (0u64..40).prop_map(Step::Acknowledge),
        4 => any::<bool>().prop_map(Step::Retransmit),
        1 => Just(Step::LoseFirst),
        1 => Just(Step::LoseAll),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    /// The incrementally updated sums equal their definitions.
    #[test]
    fn incremental_sums_match_their_definitions(steps in steps()) {
        let mut board = Scoreboard::new(10);
        for step in steps {
            let (una, nxt) = (board.acknowledged(), board.sent());
            match step {
                Step::Send(length) => {
                    board.send(0, length);
                }
                Step::Sack(from, length) => {
                    let (left, right) = (una + 1 + from, (una + 1 + from + length).min(nxt));
                    if left < right {
                        board.sack(left..right);
                        board.find_losses();
                    }
                }
                Step::Acknowledge(more) => {
                    let number = (una + more).min(nxt);
                    let progress = board.acknowledge(number);
                    prop_assert_eq!(progress.bytes, number - una);
                    prop_assert!(progress.delivered <= progress.bytes);
                }
                Step::Retransmit(unproven) => {
                    if let Some(candidate) = board.candidate(unproven) {
                        prop_assert!(unproven || board.is_missing());
                        board.retransmit(0, candidate, true);
                    } else {
                        prop_assert!(!board.is_missing());
                    }
                }
                Step::LoseFirst => board.lose_first(),
                Step::LoseAll => board.lose_all(),
            }
            let bytes = |of: &dyn Fn(&Outstanding) -> u64| board.segments.iter().map(of).sum::<u64>();
            prop_assert_eq!(bytes(&Outstanding::length), board.flight());
            prop_assert_eq!(bytes(&|segment| segment.length() * u64::from(segment.copies)), board.pipe());
            prop_assert_eq!(bytes(&|segment| if segment.is_missing() { segment.length() } else { 0 }), board.missing);
            for segment in &board.segments {
                prop_assert_eq!(segment.sacked, board.sacked.contains(&(segment.start..segment.end)));
                prop_assert!(!segment.sacked || segment.copies == 0);
                prop_assert!(segment.sacked || segment.lost || segment.copies > 0);
            }
        }
    }
}

/// RFC 6675's IsLost: three intervals above, or more than two segments.
#[test]
fn segments_are_lost_by_sacked_data_above() {
    let losses = |blocks: &[(u64, u64)]| {
        let mut board = Scoreboard::new(10);
        for _ in 0..10 {
            board.send(0, 10);
        }
        blocks.iter().for_each(|block| {
            board.sack(block.0..block.1);
        });
        board.find_losses();
        board
            .segments
            .iter()
            .filter(|segment| segment.lost)
            .map(|segment| segment.start)
            .collect::<Vec<_>>()
    };
    assert_eq!(losses(&[(11, 31)]), []);
    assert_eq!(losses(&[(11, 41)]), [1]);
    assert_eq!(losses(&[(11, 21), (31, 41)]), []);
    assert_eq!(losses(&[(11, 21), (31, 41), (51, 61)]), [1]);
    // Only two segments are above the one at 21.
    assert_eq!(losses(&[(11, 21), (31, 51)]), [1]);
    assert_eq!(losses(&[(31, 41), (51, 71)]), [1, 11, 21]);
}
