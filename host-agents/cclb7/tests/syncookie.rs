// SPDX-License-Identifier: Apache-2.0
//! The programs verify SYN cookies by the vectors of `docs/cookie-vectors.json`. No server listens here, so a valid cookie
//! counts as refused by the kernel, and an invalid one does not count.

mod common;

use std::net::SocketAddr;

use common::lab::{PacketLab, V4, V6};
use frontage_cclb7::frame::{ACK, RST, Segment, timestamps};
use frontage_cookie::syn;
use frontage_cookie::vectors::{self, Syn, Vectors};

fn cases() -> Vec<Syn> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/cookie-vectors.json"
    );
    let vectors: Vectors = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    vectors.syn
}

/// Return the acknowledgment of the vector's answer, as it reaches a server.
fn acknowledgment(case: &Syn, server: SocketAddr) -> Segment {
    let clock = 0x1240 | u32::from(case.window_scale) << 1 | u32::from(case.sack);
    Segment {
        source: SocketAddr::new(case.client, case.client_port),
        destination: server,
        seq: case.client_isn.wrapping_add(1),
        ack: case.isn.wrapping_add(1),
        flags: ACK,
        options: if case.timestamps {
            timestamps(1, clock << 16 | 0x4321)
        } else {
            Vec::new()
        },
        payload: 0,
    }
}

fn is_valid(lab: &mut PacketLab, segment: &Segment) -> bool {
    let before = lab.packets("syn_cookie_refused");
    lab.ingress(segment);
    lab.packets("syn_cookie_refused") > before
}

#[test]
fn cookies_of_the_vectors_are_valid_and_changed_ones_are_not() {
    for side in [V4, V6] {
        let Some(mut lab) = PacketLab::new(side) else {
            return;
        };
        let mut seen = 0;
        for case in cases() {
            let server = lab.server;
            if case.client.is_ipv4() != server.is_ipv4() {
                continue;
            }
            seen += 1;
            let key = syn::Key::new(&vectors::secret(&case.secret));
            lab.set_syn_key(u32::from(case.epoch), key.words());
            let valid = acknowledgment(&case, server);
            assert!(is_valid(&mut lab, &valid), "{case:?}");
            let mut invalid: Vec<Segment> = (0..32)
                .map(|bit| Segment {
                    ack: valid.ack ^ 1 << bit,
                    ..valid.clone()
                })
                .collect();
            invalid.push(Segment {
                seq: valid.seq ^ 1,
                ..valid.clone()
            });
            invalid.push(Segment {
                flags: ACK | RST,
                ..valid.clone()
            });
            invalid.push(Segment {
                source: SocketAddr::new(case.client, case.client_port ^ 1),
                ..valid.clone()
            });
            if case.timestamps {
                invalid.push(Segment {
                    options: Vec::new(),
                    ..valid.clone()
                });
                for bit in 16..21 {
                    let mut options = valid.options.clone();
                    let at = options.len() - 1 - bit / 8;
                    options[at] ^= 1 << (bit % 8);
                    invalid.push(Segment {
                        options,
                        ..valid.clone()
                    });
                }
            }
            for segment in &invalid {
                assert!(!is_valid(&mut lab, segment), "{case:?} {segment:?}");
            }
            lab.set_syn_key(1 - u32::from(case.epoch), key.words());
            assert!(!is_valid(&mut lab, &valid), "no key of the epoch");
        }
        assert!(seen > 10);
    }
}
