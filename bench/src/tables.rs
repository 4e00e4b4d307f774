// SPDX-License-Identifier: Apache-2.0
//! Tables alone: lookups per second of one core's time, and the memory of a million entries.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde::Serialize;
use softswitch_pipeline::{
    ActionCall, ActionId, Entry, EntryAction, EntryKey, LookupKey, MatchField, Options, Pipeline,
    Program, StateError, TableId, Value,
};
use softswitch_random::Rng;

use crate::acl::{self, Masks};
use crate::clock::core_time;
use crate::random::Draws;

const SEED: u64 = 1;
/// Number of keys that are looked up in turn; each hits an entry.
const KEYS: usize = 1 << 16;
/// Number of entries that are created, then inserted, at a time.
const PORTION: usize = 1000;
/// Number of runs, whose median is the result.
const RUNS: usize = 5;
/// Core time of a run.
const RUN: Duration = Duration::from_millis(200);

/// Kinds of tables in `bench/p4/tables.p4` and of their entries.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Keys of 48 bits.
    Exact,
    /// IPv4 routes with about the prefix lengths of the Internet.
    Lpm32,
    /// IPv6 routes.
    Lpm128,
    /// Rules of a packet filter.
    Ternary,
    /// Rules with random masks.
    Scattered,
}

/// Prefix lengths of routes, with their shares in percent.
const IPV4_LENS: [(usize, u32); 10] = [
    (60, 24),
    (11, 22),
    (10, 23),
    (5, 21),
    (5, 20),
    (3, 19),
    (2, 18),
    (2, 16),
    (1, 14),
    (1, 32),
];
const IPV6_LENS: [(usize, u32); 7] = [
    (47, 48),
    (14, 32),
    (12, 44),
    (10, 40),
    (9, 36),
    (5, 64),
    (3, 29),
];

impl Kind {
    fn table(self) -> &'static str {
        match self {
            Self::Exact => "I.exact_48",
            Self::Lpm32 => "I.lpm_32",
            Self::Lpm128 => "I.lpm_128",
            Self::Ternary | Self::Scattered => "I.ternary_104",
        }
    }

    /// Returns keys of entries, possibly with duplicates, each with a packet's key that it matches.
    fn entries(self, count: usize) -> Box<dyn Iterator<Item = (EntryKey, Vec<Value>)>> {
        let mut random = Rng::new(SEED);
        let mut lpm = move |width: u32, top: u128, lens: &[(usize, u32)]| {
            let len = random.share(lens);
            let bits = u128::from(random.next()) << 64 | u128::from(random.next());
            let bits = (bits >> (128 - width)) | top;
            let open = (1 << (width - len)) - 1;
            let value = Value::from(bits & !open);
            let field = MatchField::Lpm {
                value,
                prefix_len: len,
            };
            (
                EntryKey {
                    fields: vec![field],
                    priority: 0,
                },
                vec![Value::from(bits)],
            )
        };
        match self {
            Self::Exact => {
                let mut random = Rng::new(SEED);
                Box::new(std::iter::repeat_with(move || {
                    let value = Value::from(random.next() >> 16);
                    let fields = vec![MatchField::Exact(value.clone())];
                    (
                        EntryKey {
                            fields,
                            priority: 0,
                        },
                        vec![value],
                    )
                }))
            }
            Self::Lpm32 => Box::new(std::iter::repeat_with(move || lpm(32, 0, &IPV4_LENS))),
            // Global unicast addresses, mostly of 2000::/4.
            Self::Lpm128 => Box::new(std::iter::repeat_with(move || {
                lpm(128, 1 << 125, &IPV6_LENS)
            })),
            Self::Ternary | Self::Scattered => {
                let masks = if self == Self::Ternary {
                    Masks::Prefixes
                } else {
                    Masks::Random
                };
                let rules = acl::rules(masks, count, SEED).into_iter().enumerate();
                Box::new(rules.map(move |(i, rule)| {
                    let tuple = rule.tuple(&mut Rng::new(i as u64));
                    (rule.key(acl::priority(i, count)), tuple.values())
                }))
            }
        }
    }
}

/// Results for one kind of table and number of entries.
#[derive(Serialize)]
pub struct Rates {
    /// Lookups per second of core time, all of which hit.
    lookups: f64,
    /// Insertions of new entries per second of core time.
    insertions: f64,
    /// Deletions per second of core time, in random order until the table is empty.
    deletions: f64,
}

pub fn rates(program: &Path, kind: Kind, count: usize) -> Result<Rates> {
    let mut table = Filled::new(program, kind)?;
    let entries = table.fill(kind, count, KEYS)?;
    let mut keys: Vec<LookupKey> = entries.iter().cycle().take(KEYS).cloned().collect();
    Rng::new(!SEED).shuffle(&mut keys);
    let mut rates = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let (mut lookups, mut hits) = (0, 0);
        let start = core_time();
        while core_time() - start < RUN {
            hits += keys
                .iter()
                .filter(|k| table.pipeline.hit(k).is_some())
                .count();
            lookups += keys.len();
        }
        rates.push(lookups as f64 / (core_time() - start).as_secs_f64());
        ensure!(hits == lookups, "{hits} of {lookups} lookups hit an entry");
    }
    rates.sort_by(f64::total_cmp);
    let insertions = count as f64 / table.insertion_time.as_secs_f64();
    Ok(Rates {
        lookups: rates[RUNS / 2],
        insertions,
        deletions: table.empty()?,
    })
}

/// Returns the bytes by which these entries increase the memory of the process.
pub fn memory(program: &Path, kind: Kind, count: usize) -> Result<usize> {
    let mut table = Filled::new(program, kind)?;
    table.fill(kind, count, 0)?;
    Ok(table.bytes)
}

struct Filled {
    pipeline: Pipeline,
    table: TableId,
    action: ActionId,
    /// Core time of all insertions.
    insertion_time: Duration,
    bytes: usize,
}

impl Filled {
    fn new(program: &Path, kind: Kind) -> Result<Self> {
        let json = fs::read_to_string(program)
            .with_context(|| format!("{}: cannot read the program", program.display()))?;
        let pipeline = Pipeline::new(Program::load(&json)?, Options::default());
        let info = pipeline.program().info();
        let table = info
            .table(kind.table())
            .context("the program has no such table")?;
        let action = info.tables[table.index()].action("I.forward");
        let action = action.context("the table has no action I.forward")?;
        Ok(Self {
            pipeline,
            table,
            action,
            insertion_time: Duration::ZERO,
            bytes: 0,
        })
    }

    /// Inserts `count` entries; returns at most `keys` keys that hit them.
    fn fill(&mut self, kind: Kind, count: usize, keys: usize) -> Result<Vec<LookupKey>> {
        let mut entries = kind.entries(count);
        let mut hitting = Vec::with_capacity(keys);
        let before = resident()?;
        let mut inserted = 0;
        while inserted < count {
            // Portions exclude the time to create entries from the measurement.
            let portion: Vec<_> = entries
                .by_ref()
                .take(PORTION.min(count - inserted))
                .collect();
            let mut new = Vec::with_capacity(portion.len());
            for (key, hit) in portion {
                let args = vec![(new.len() as u32 % 512).into()];
                let action = EntryAction::Direct(ActionCall {
                    action: self.action,
                    args,
                });
                new.push(Entry {
                    key,
                    action,
                    idle_timeout: 0,
                });
                if hitting.len() < keys && (inserted + new.len()) % count.div_ceil(KEYS) == 0 {
                    hitting.push(self.pipeline.lookup_key(self.table, &hit)?);
                }
            }
            let start = core_time();
            for entry in new {
                match self.pipeline.insert_entry(self.table, entry, 0) {
                    // Random keys may be duplicates.
                    Ok(()) | Err(StateError::AlreadyExists { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            self.insertion_time += core_time() - start;
            inserted = self.pipeline.entry_count(self.table)?;
        }
        self.bytes = resident()?.saturating_sub(before);
        Ok(hitting)
    }
}

impl Filled {
    /// Deletes all entries in random order; returns the deletions per second of core time.
    fn empty(&mut self) -> Result<f64> {
        let entries = self.pipeline.entries(self.table)?;
        let mut keys: Vec<EntryKey> = entries.into_iter().map(|e| e.entry.key).collect();
        Rng::new(SEED).shuffle(&mut keys);
        let start = core_time();
        for key in &keys {
            self.pipeline.delete_entry(self.table, key)?;
        }
        Ok(keys.len() as f64 / (core_time() - start).as_secs_f64())
    }
}

/// Returns the resident set size of this process in bytes.
fn resident() -> Result<usize> {
    let text =
        fs::read_to_string("/proc/self/statm").context("/proc/self/statm: cannot read it")?;
    let pages = text
        .split(' ')
        .nth(1)
        .context("/proc/self/statm: missing second number")?;
    // SAFETY: the call only reads a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Ok(pages.parse::<usize>()? * usize::try_from(page)?)
}
