// SPDX-License-Identifier: Apache-2.0
//! Random entries for all tables and arrays of a program. Values come from the small pools that
//! [`packets`](super::packets) uses, so that packets hit entries.

use softswitch_pipeline::{
    ActionCall, CloneSession, CounterId, Entry, EntryAction, EntryKey, Group, GroupMember,
    Implementation, MatchField, MatchKind, MeterConfig, MeterId, Pipeline, ProfileId, RegisterId,
    Replica, TableId, Value, ValueSetId,
};
use softswitch_random::Rng;

use super::packets::{ADDRESSES, ADDRESSES_6, L4_PORTS, MACS};

const ENTRIES: usize = 64;
const RATES: MeterConfig = MeterConfig {
    cir: 1000,
    cburst: 300,
    pir: 5000,
    pburst: 600,
    eburst: 0,
};

fn value(width: u32, rng: &mut Rng) -> Value {
    let v: u128 = match width {
        _ if rng.one_in(20) => u128::from(rng.next()) << 64 | u128::from(rng.next()),
        128 => rng.pick(&ADDRESSES_6),
        48 => rng.pick(&MACS).into(),
        32 => rng.pick(&ADDRESSES).into(),
        16 if rng.one_in(2) => rng.pick(&L4_PORTS).into(),
        _ => rng.below(8) as u128,
    };
    let mask = u128::MAX >> (128 - width.clamp(1, 128));
    Value::from(if width == 0 { 0 } else { v & mask })
}

fn field(kind: MatchKind, width: u32, rng: &mut Rng) -> MatchField {
    let v = value(width, rng);
    let below = |len: u32| match width {
        1..=128 => u128::MAX >> (128 - width) & !((1u128 << (width - len)).wrapping_sub(1)),
        _ => 0,
    };
    match kind {
        MatchKind::Exact => MatchField::Exact(v),
        MatchKind::Valid => MatchField::Valid(rng.one_in(2)),
        MatchKind::Lpm => {
            let prefix_len = rng.pick(&[width, width, width / 2, 1.min(width)]);
            let masked = v.to_u128().unwrap_or(0)
                & if prefix_len == 0 {
                    0
                } else {
                    below(prefix_len)
                };
            MatchField::Lpm {
                value: masked.into(),
                prefix_len,
            }
        }
        MatchKind::Ternary => {
            let mask = rng.pick(&[0, 1, 3, u128::MAX]) & Value::ones(width).to_u128().unwrap_or(0);
            let masked = v.to_u128().unwrap_or(0) & mask;
            MatchField::Ternary {
                value: masked.into(),
                mask: mask.into(),
            }
        }
        MatchKind::Range => MatchField::Range {
            low: 0u32.into(),
            high: v,
        },
        MatchKind::Optional => MatchField::Optional((!rng.one_in(3)).then_some(v)),
    }
}

fn call(p: &Pipeline, table: usize, rng: &mut Rng) -> ActionCall {
    let info = p.program().info();
    let actions = &info.tables[table].actions;
    let action = actions[rng.below(actions.len())].1;
    let params = &info.actions[action.index()].params;
    let args = params.iter().map(|(_, width)| value(*width, rng)).collect();
    ActionCall { action, args }
}

/// Fills all tables and arrays. Entries that a table refuses are skipped.
pub fn furnish(p: &mut Pipeline, seed: u64) {
    let rng = &mut Rng::new(seed);
    let info = p.program().info().clone();
    let replicas = vec![
        Replica {
            port: 3,
            instance: 1,
        },
        Replica {
            port: 4,
            instance: 2,
        },
    ];
    for id in 0..8 {
        let session = CloneSession {
            replicas: replicas.clone(),
            truncate_to: id * 9,
            class_of_service: 1,
        };
        p.insert_clone_session(id, session).unwrap();
        p.insert_multicast_group(id + 1, replicas.clone()).unwrap();
    }
    for (i, _) in info.profiles.iter().enumerate() {
        let profile = ProfileId(i as u32);
        let mine = Implementation::Profile(profile);
        let Some(table) = info.tables.iter().position(|t| t.implementation == mine) else {
            continue;
        };
        for id in 1..4 {
            let call = call(p, table, rng);
            let _ = p.insert_member(profile, id, call);
        }
        let member = |member| GroupMember {
            member,
            weight: member,
            watch_port: None,
        };
        let group = Group {
            members: (1..4).map(member).collect(),
            max_size: 0,
        };
        let _ = p.insert_group(profile, 1, group);
    }
    for (i, table) in info.tables.iter().enumerate() {
        let id = TableId(i as u32);
        if !table.actions.is_empty() && rng.one_in(3) {
            let action = EntryAction::Direct(call(p, i, rng));
            let _ = p.set_default_action(id, Some(action));
        }
        if table.direct_meter.is_some() && rng.one_in(2) {
            p.set_direct_meter(id, None, Some(RATES)).unwrap();
        }
        for _ in 0..ENTRIES {
            if table.actions.is_empty() || table.key.is_empty() {
                continue;
            }
            let action = match table.implementation {
                Implementation::Direct => EntryAction::Direct(call(p, i, rng)),
                Implementation::Profile(_) if rng.one_in(2) => EntryAction::Group(1),
                Implementation::Profile(_) => EntryAction::Member(1 + rng.below(3) as u32),
            };
            let fields = table
                .key
                .iter()
                .map(|k| field(k.kind, k.width, rng))
                .collect();
            let priority = if table.needs_priority {
                1 + rng.below(9) as i32
            } else {
                0
            };
            let idle_timeout = 0;
            let _ = p.insert_entry(
                id,
                Entry {
                    key: EntryKey { fields, priority },
                    action,
                    idle_timeout,
                },
                0,
            );
        }
    }
    for (i, register) in info.registers.iter().enumerate() {
        for cell in 0..register.size.min(200) {
            let v = value(register.width, rng);
            p.set_register(RegisterId(i as u32), cell, &v).unwrap();
        }
    }
    for (i, meter) in info.meters.iter().enumerate() {
        for cell in 0..meter.size.min(8) {
            p.set_meter(MeterId(i as u32), cell, Some(RATES)).unwrap();
        }
    }
    for (i, set) in info.value_sets.iter().enumerate() {
        let member = |rng: &mut Rng| {
            set.fields
                .iter()
                .map(|&w| field(MatchKind::Exact, w, rng))
                .collect()
        };
        let members = (0..4).map(|_| member(rng)).collect();
        let _ = p.set_value_set(ValueSetId(i as u32), members);
    }
}

/// Formats all persistent state as text.
pub fn state(p: &mut Pipeline) -> Vec<String> {
    let info = p.program().info().clone();
    let mut all = Vec::new();
    for (i, r) in info.registers.iter().enumerate() {
        let cell = |c| p.register(RegisterId(i as u32), c).unwrap();
        all.push(format!(
            "{} {:?}",
            r.name,
            (0..r.size).map(cell).collect::<Vec<_>>()
        ));
    }
    for (i, c) in info.counters.iter().enumerate() {
        let cell = |n| p.counter(CounterId(i as u32), n).unwrap();
        all.push(format!(
            "{} {:?}",
            c.name,
            (0..c.size).map(cell).collect::<Vec<_>>()
        ));
    }
    for (i, t) in info.tables.iter().enumerate() {
        let id = TableId(i as u32);
        all.push(format!(
            "{} {:?} {:?} {:?}",
            t.name,
            p.entries(id).unwrap(),
            p.direct_counter(id, None).unwrap(),
            p.direct_meter_state(id, None).unwrap(),
        ));
    }
    all.push(format!("{:?} {:?}", p.take_digests(), p.take_log()));
    all
}
