// SPDX-License-Identifier: Apache-2.0
//! The generator of the vectors, with a fixed seed.

use std::net::IpAddr;

use super::{
    Cid, CidInvalid, Ipv6, Ipv6Invalid, Ipv6Tables, Quantisation, Syn, TcpDynamic, TcpInvalid,
    TcpStatic, TcpTables, Vectors, secret, tuple,
};
use crate::quant::{IPV6, Quantiser, RPT_UNIT_US, TCP_COUNT, TCP_RPT};
use crate::tcp::{Sid, Signals};
use crate::{cid, ipv6, syn, tcp};

const SECRETS: [&str; 3] = [
    "000102030405060708090a0b0c0d0e0f",
    "f0e1d2c3b4a5968778695a4b3c2d1e0f00112233445566",
    "8f1e2d3c4b5a69788796a5b4c3d2e1f0ffeeddccbbaa99887766554433221100",
];
const SEED: u64 = 0x0c10_0dc0_0c1e;

/// Generate the content of the file.
pub fn generate() -> Vectors {
    let mut rng = SplitMix(SEED);
    Vectors {
        quantisation: quantisation(),
        tcp_dynamic: tcp_dynamic(&mut rng),
        tcp_tables: SECRETS.map(tcp_tables).into(),
        tcp_static: tcp_static(&mut rng),
        tcp_invalid: tcp_invalid(&mut rng),
        ipv6_tables: SECRETS.map(ipv6_tables).into(),
        ipv6: ipv6_cases(&mut rng),
        ipv6_invalid: ipv6_invalid(&mut rng),
        cid: cid_cases(&mut rng),
        cid_invalid: cid_invalid(&mut rng),
        syn: syn_cases(&mut rng),
    }
}

fn quantisation() -> Vec<Quantisation> {
    let fields: [(&str, Quantiser); 3] = [
        ("tcp_count", TCP_COUNT),
        ("tcp_rpt", TCP_RPT),
        ("ipv6", IPV6),
    ];
    let cases = fields.into_iter().flat_map(|(field, q)| {
        // Both ends of every code's interval, then values that are clipped.
        let starts = (0..=q.max_code()).map(move |code| q.decode(code));
        let mut values: Vec<u64> = starts.flat_map(|v| [v.saturating_sub(1), v]).collect();
        let largest = q.decode(q.max_code());
        values.extend([largest + 1, largest * 2, u64::from(u32::MAX), 1 << 52]);
        values.sort_unstable();
        values.dedup();
        values.into_iter().map(move |value| (field, q, value))
    });
    cases
        .map(|(field, q, value)| {
            let code = q.encode(value);
            Quantisation {
                field: field.into(),
                w: q.width,
                m: q.mantissa,
                value,
                code,
                decoded: q.decode(code),
            }
        })
        .collect()
}

fn tcp_dynamic(rng: &mut SplitMix) -> Vec<TcpDynamic> {
    let mut inputs = vec![
        (0, 0, 0, 0),
        (1023, 7, 1, 0),
        (1024, 8, 1, 1),
        (0x03ff_ffff, 64, 8, 7),
        (0x0400_0000, 1_000_000, 448, 448),
        (u32::MAX, u64::from(u32::MAX), 100_000, 100_000),
    ];
    inputs.extend((0..32).map(|_| {
        (
            rng.next() as u32,
            rng.log_uniform(20),
            rng.log_uniform(10),
            rng.log_uniform(9),
        )
    }));
    inputs
        .into_iter()
        .map(|(ts, rpt_us, n_af, n_ff)| {
            let tsval = tcp::encode_dynamic(ts, Signals { rpt_us, n_af, n_ff });
            TcpDynamic {
                ts,
                rpt_us,
                n_af,
                n_ff,
                tsval,
            }
        })
        .collect()
}

fn tcp_tables(hex: &str) -> TcpTables {
    let key = tcp::Key::new(0, &secret(hex));
    let head = |t: &[u8; 256]| {
        t[..8]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect::<String>()
    };
    let xor = |t: &[u8; 256]| t.iter().fold(0, |x, b| x ^ b);
    TcpTables {
        secret: hex.into(),
        heads: key.tables().each_ref().map(head),
        xors: key.tables().each_ref().map(xor),
    }
}

fn tcp_static(rng: &mut SplitMix) -> Vec<TcpStatic> {
    let mut cases = Vec::new();
    for i in 0..48u32 {
        let hex = SECRETS[i as usize % SECRETS.len()];
        let key = tcp::Key::new(if i == 7 { 70_000 } else { i % 5 }, &secret(hex));
        let (client, vip, client_port, vip_port) = rng.connection();
        let tuple = tuple(client, vip, client_port, vip_port);
        let sid = match i {
            0 => 0,
            1 => Sid::MAX,
            _ => rng.next() as u16 & Sid::MAX,
        };
        let sealed = Sid::new(sid).expect("masked to 12 bits");
        let coarse_clock = if i == 2 { u16::MAX } else { rng.next() as u16 };
        cases.push(TcpStatic {
            secret: hex.into(),
            key_id: key.id(),
            client,
            vip,
            client_port,
            vip_port,
            sid,
            coarse_clock,
            tweak: tuple.tweak(),
            code: key.seal(&tuple, sealed),
            tsval: key.encode_static(&tuple, sealed, coarse_clock),
        });
    }
    cases
}

fn tcp_invalid(rng: &mut SplitMix) -> Vec<TcpInvalid> {
    let mut cases = Vec::new();
    while cases.len() < 36 {
        let hex = SECRETS[cases.len() % SECRETS.len()];
        let key = tcp::Key::new(cases.len() as u32 % 3, &secret(hex));
        let (client, vip, client_port, vip_port) = rng.connection();
        let own = tuple(client, vip, client_port, vip_port);
        let sid = Sid::new(rng.next() as u16 & Sid::MAX).expect("masked to 12 bits");
        let (reason, code) = match cases.len() % 9 {
            0..3 => (
                "check",
                key.seal(&own, sid) ^ (1 + (rng.next() as u16 & 0x7e)),
            ),
            3..6 => ("epoch", key.seal(&own, sid) ^ 0x8000),
            _ => (
                "connection",
                key.seal(&tuple(client, vip, client_port ^ 1, vip_port), sid),
            ),
        };
        // One code in eight passes by chance; skip those, because they cannot test rejection.
        if key.open(&own, code).is_none() {
            let (secret, key_id, reason) = (hex.into(), key.id(), reason.into());
            cases.push(TcpInvalid {
                secret,
                key_id,
                client,
                vip,
                client_port,
                vip_port,
                code,
                reason,
            });
        }
    }
    cases
}

fn ipv6_tables(hex: &str) -> Ipv6Tables {
    let key = ipv6::Key::new(0, &secret(hex));
    let tables = key.tables().as_flattened();
    Ipv6Tables {
        secret: hex.into(),
        heads: tables.iter().map(|t| t[0]).collect(),
        xor: tables.as_flattened().iter().fold(0, |x, word| x ^ word),
    }
}

fn ipv6_cases(rng: &mut SplitMix) -> Vec<Ipv6> {
    let mut cases = Vec::new();
    for i in 0..40usize {
        let hex = SECRETS[i % SECRETS.len()];
        let key = ipv6::Key::new(i as u32 % 5, &secret(hex));
        let dynamic = i % 2 == 0;
        let (rpt_us, n_af, n_ff) = match (dynamic, i) {
            (false, _) => (0, 0, 0),
            (true, 0) => (u64::MAX >> 12, 1 << 40, 1 << 40),
            (true, _) => (
                rng.log_uniform(30),
                rng.log_uniform(14),
                rng.log_uniform(12),
            ),
        };
        let sid = if i < 2 { u16::MAX } else { rng.next() as u16 };
        let x = if dynamic { (i / 2 % 2) as u8 } else { 0 };
        let signals = dynamic.then_some(Signals { rpt_us, n_af, n_ff });
        let cookie = ipv6::Cookie {
            sid,
            expects_cookie_address: x == 1,
            signals,
        };
        cases.push(Ipv6 {
            secret: hex.into(),
            key_id: key.id(),
            dynamic,
            sid,
            rpt_us,
            n_af,
            n_ff,
            x,
            plain: format!("{:016x}", cookie.plain(key.id())),
            interface_id: format!("{:016x}", key.seal(&cookie)),
        });
    }
    cases
}

fn ipv6_invalid(rng: &mut SplitMix) -> Vec<Ipv6Invalid> {
    let mut cases = Vec::new();
    while cases.len() < 24 {
        let hex = SECRETS[cases.len() % SECRETS.len()];
        let key = ipv6::Key::new(cases.len() as u32 % 3, &secret(hex));
        let cookie = ipv6::Cookie {
            sid: rng.next() as u16,
            expects_cookie_address: false,
            signals: None,
        };
        let sealed = key.seal(&cookie);
        let (reason, id) = match cases.len() % 3 {
            0 => ("check", sealed ^ (1 + rng.next() % 0xfff_ffff)),
            1 => ("epoch", sealed ^ (1 << 60)),
            _ => ("version", sealed ^ ((1 + rng.next() % 3) << 62)),
        };
        if key.open(id).is_none() {
            let interface_id = format!("{id:016x}");
            cases.push(Ipv6Invalid {
                secret: hex.into(),
                key_id: key.id(),
                interface_id,
                reason: reason.into(),
            });
        }
    }
    cases
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn cid_cases(rng: &mut SplitMix) -> Vec<Cid> {
    let mut cases = Vec::new();
    for i in 0..24usize {
        let secret_hex = SECRETS[i % SECRETS.len()];
        let key = ipv6::Key::new(i as u32 % 5, &secret(secret_hex));
        let sid = if i < 2 { u16::MAX } else { rng.next() as u16 };
        let word = rng.next().to_be_bytes();
        let (form, nonce, random, id) = if i % 4 == 3 {
            let nonce: [u8; 9] = std::array::from_fn(|j| word[j % word.len()]);
            ("plain", hex(&nonce), String::new(), cid::plain(sid, nonce))
        } else {
            let nonce = match i {
                0 => 1,
                1 => ipv6::NONCE_MAX,
                _ => (rng.next() as u32 & ipv6::NONCE_MAX).max(1),
            };
            let random = [word[0], word[1], word[2]];
            let id = cid::sealed(&key, sid, nonce, random);
            ("sealed", format!("{nonce:06x}"), hex(&random), id)
        };
        cases.push(Cid {
            secret: secret_hex.into(),
            key_id: key.id(),
            form: form.into(),
            sid,
            nonce,
            random,
            id: hex(&id),
        });
    }
    cases
}

fn cid_invalid(rng: &mut SplitMix) -> Vec<CidInvalid> {
    let mut cases = Vec::new();
    while cases.len() < 30 {
        let secret_hex = SECRETS[cases.len() % SECRETS.len()];
        let key = ipv6::Key::new(cases.len() as u32 % 3, &secret(secret_hex));
        let sid = rng.next() as u16;
        let mut id = cid::sealed(&key, sid, 1 + rng.next() as u32 % 1000, [1, 2, 3]).to_vec();
        let reason = match cases.len() % 5 {
            0 => {
                id[1 + rng.next() as usize % 8] ^= 1 << (rng.next() % 8);
                "check"
            }
            1 => {
                id[0] ^= 0x20;
                "epoch"
            }
            2 => {
                id[0] |= 0x60 + 0x20 * (rng.next() % 4) as u8;
                "config"
            }
            3 => {
                id.truncate(rng.next() as usize % cid::LEN);
                "length"
            }
            _ => {
                let cookie = ipv6::Cookie {
                    sid,
                    expects_cookie_address: false,
                    signals: None,
                };
                let bits = key.seal(&cookie) ^ 3 << 62;
                id[1..9].copy_from_slice(&bits.to_be_bytes());
                "cookie"
            }
        };
        if cid::open([&key], &id).is_none() {
            cases.push(CidInvalid {
                secret: secret_hex.into(),
                key_id: key.id(),
                id: hex(&id),
                reason: reason.into(),
            });
        }
    }
    cases
}

const _: () = assert!(
    RPT_UNIT_US == 8,
    "the vectors' rpt_us are chosen around units of 8 us"
);

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
struct SplitMix(u64);

fn syn_cases(rng: &mut SplitMix) -> Vec<Syn> {
    let case = |i: usize| {
        let hex = SECRETS[i % SECRETS.len()];
        let (client, _, client_port, _) = rng.connection();
        let bits = rng.next();
        let timestamps = !i.is_multiple_of(4);
        let mut case = Syn {
            secret: hex.into(),
            client,
            client_port,
            client_isn: rng.next() as u32,
            epoch: bits as u8 & 1,
            age: (bits >> 1) as u8 & 3,
            mss_code: (bits >> 3) as u8 & 7,
            timestamps,
            window_scale: if timestamps {
                (bits >> 6) as u8 & 15
            } else {
                15
            },
            sack: timestamps && bits >> 10 & 1 == 1,
            isn: 0,
        };
        let (syn, head) = case.parts();
        case.isn = syn::Key::new(&secret(hex)).isn(&syn, head);
        case
    };
    (0..48).map(case).collect()
}

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Return a number of up to `bits` bits. Each length is equally likely.
    fn log_uniform(&mut self, bits: u64) -> u64 {
        let length = self.next() % (bits + 1);
        self.next() & ((1 << length) - 1)
    }

    fn connection(&mut self) -> (IpAddr, IpAddr, u16, u16) {
        let v6 = self.next() & 1 == 1;
        let mut address = || {
            let bits = u128::from(self.next()) << 64 | u128::from(self.next());
            if v6 {
                IpAddr::from((bits >> 3 | 0x2 << 124).to_be_bytes())
            } else {
                // 1.0.0.0 to 126.255.255.255: a switch drops other sources.
                IpAddr::from((bits as u32 % 0x7e00_0000 + 0x0100_0000).to_be_bytes())
            }
        };
        let (client, vip) = (address(), address());
        (
            client,
            vip,
            self.next() as u16 | 1024,
            if self.next() & 1 == 1 { 443 } else { 80 },
        )
    }
}
