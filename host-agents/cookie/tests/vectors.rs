// SPDX-License-Identifier: Apache-2.0
//! The committed vectors equal the generator's output, and the codec agrees with each of them.

use frontage_cookie::quant::Quantiser;
use frontage_cookie::tcp::{Sid, Signals};
use frontage_cookie::vectors::{self, Vectors};
use frontage_cookie::{cid, ipv6, syn, tcp};

const PATH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/cookie-vectors.json"
);

fn committed() -> Vectors {
    let text = std::fs::read_to_string(PATH).expect("docs/cookie-vectors.json");
    serde_json::from_str(&text).expect("vectors of the known shape")
}

#[test]
fn committed_vectors_are_up_to_date() {
    let text = std::fs::read_to_string(PATH).expect("docs/cookie-vectors.json");
    let fresh = vectors::to_json(&vectors::generate());
    assert!(
        text == fresh,
        "docs/cookie-vectors.json is stale; run: cargo run -p frontage-cookie --bin cookie-vectors > docs/cookie-vectors.json"
    );
}

#[test]
fn quantisation_matches_the_vectors() {
    for c in committed().quantisation {
        let q = Quantiser {
            width: c.w,
            mantissa: c.m,
        };
        assert_eq!(
            (q.encode(c.value), q.decode(c.code)),
            (c.code, c.decoded),
            "{c:?}"
        );
    }
}

#[test]
fn tcp_dynamic_form_matches_the_vectors() {
    for c in committed().tcp_dynamic {
        let signals = Signals {
            rpt_us: c.rpt_us,
            n_af: c.n_af,
            n_ff: c.n_ff,
        };
        assert_eq!(tcp::encode_dynamic(c.ts, signals), c.tsval, "{c:?}");
    }
}

#[test]
fn tcp_static_seals_and_opens() {
    for c in committed().tcp_static {
        let key = tcp::Key::new(c.key_id, &vectors::secret(&c.secret));
        let tuple = vectors::tuple(c.client, c.vip, c.client_port, c.vip_port);
        let sid = Sid::new(c.sid).expect("12 bits");
        assert_eq!(
            key.encode_static(&tuple, sid, c.coarse_clock),
            c.tsval,
            "{c:?}"
        );
        assert_eq!(key.open(&tuple, c.code), Some(sid), "{c:?}");
    }
}

#[test]
fn tcp_invalid_does_not_open() {
    for c in committed().tcp_invalid {
        let key = tcp::Key::new(c.key_id, &vectors::secret(&c.secret));
        let tuple = vectors::tuple(c.client, c.vip, c.client_port, c.vip_port);
        assert_eq!(key.open(&tuple, c.code), None, "{c:?}");
    }
}

#[test]
fn ipv6_seals_and_opens() {
    for c in committed().ipv6 {
        let key = ipv6::Key::new(c.key_id, &vectors::secret(&c.secret));
        let signals = c.dynamic.then_some(Signals {
            rpt_us: c.rpt_us,
            n_af: c.n_af,
            n_ff: c.n_ff,
        });
        let cookie = ipv6::Cookie {
            sid: c.sid,
            expects_cookie_address: c.x == 1,
            signals,
        };
        assert_eq!(format!("{:016x}", cookie.plain(c.key_id)), c.plain, "{c:?}");
        assert_eq!(
            format!("{:016x}", key.seal(&cookie)),
            c.interface_id,
            "{c:?}"
        );
        let opened = key.open(key.seal(&cookie)).expect("our own");
        assert_eq!(
            (opened.sid, opened.expects_cookie_address),
            (cookie.sid, cookie.expects_cookie_address)
        );
        assert_eq!(format!("{:016x}", opened.plain(c.key_id)), c.plain, "{c:?}");
    }
}

#[test]
fn ipv6_invalid_does_not_open() {
    for c in committed().ipv6_invalid {
        let key = ipv6::Key::new(c.key_id, &vectors::secret(&c.secret));
        let id = u64::from_str_radix(&c.interface_id, 16).expect("16 hexadecimal digits");
        assert_eq!(key.open(id), None, "{c:?}");
    }
}

#[test]
fn connection_ids_seal_and_open() {
    for c in committed().cid {
        let key = ipv6::Key::new(c.key_id, &vectors::secret(&c.secret));
        let nonce = vectors::bytes(&c.nonce);
        let id = if c.form == "plain" {
            cid::plain(c.sid, nonce.try_into().expect("9 bytes"))
        } else {
            let nonce = u32::from_be_bytes([0, nonce[0], nonce[1], nonce[2]]);
            let random = vectors::bytes(&c.random).try_into().expect("3 bytes");
            cid::sealed(&key, c.sid, nonce, random)
        };
        assert_eq!(id.to_vec(), vectors::bytes(&c.id), "{c:?}");
        assert_eq!(cid::open([&key], &id), Some(c.sid), "{c:?}");
    }
}

#[test]
fn invalid_connection_ids_do_not_open() {
    for c in committed().cid_invalid {
        let key = ipv6::Key::new(c.key_id, &vectors::secret(&c.secret));
        assert_eq!(cid::open([&key], &vectors::bytes(&c.id)), None, "{c:?}");
    }
}

#[test]
fn syn_cookies_match_the_vectors() {
    for c in committed().syn {
        let (syn, head) = c.parts();
        let key = syn::Key::new(&vectors::secret(&c.secret));
        assert_eq!(key.isn(&syn, head), c.isn, "{c:?}");
    }
}
