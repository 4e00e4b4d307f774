// SPDX-License-Identifier: Apache-2.0
//! The state of a pipeline, and the processing of packets.

mod egress;
mod flow;
mod ingress;
mod replication;

pub(crate) use flow::{choose, meter};

use std::collections::BTreeSet;

use crate::Nanos;
use crate::action::Externs;
use crate::native::Views;
use crate::packet::State;
use crate::parser::SetMember;
use crate::phv::{Field, Place};
use crate::pipeline::Options;
use crate::pre::Pre;
use crate::table::{Profile, Table};

/// The state of a pipeline, without the program.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) tables: Vec<Table>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) externs: Externs,
    pub(crate) value_sets: Vec<Vec<SetMember>>,
    pub(crate) pre: Pre,
    pub(crate) ports_down: BTreeSet<u32>,
    pub(crate) pool: Pool,
    /// True if packets run in native code where it exists.
    pub(crate) native: bool,
    pub(crate) views: Views,
    /// The current lookup key.
    pub(crate) key: Vec<u64>,
}

/// Buffers of finished packets, for reuse.
#[derive(Debug, Default)]
#[expect(
    clippy::vec_box,
    reason = "descriptors take the boxes out and return them"
)]
pub(crate) struct Pool(Vec<Box<State>>);

/// Maximum number of pooled buffers; further ones are freed.
const MAX_POOL: usize = 1 << 14;

impl Pool {
    pub(crate) fn get(&mut self) -> Box<State> {
        self.0.pop().unwrap_or_default()
    }

    pub(crate) fn put(&mut self, state: Box<State>) {
        if self.0.len() < MAX_POOL {
            self.0.push(state);
        }
    }
}

pub(crate) const MICRO: Nanos = 1000;

pub(crate) fn set(field: Option<Field>, mem: &mut [u8], v: u64) {
    if let Some(f) = field {
        f.set64(mem, v);
    }
}

/// Copies the metadata fields of a field list from one packet to another.
fn preserve(list: Option<&Vec<Field>>, from: &[u8], to: &mut [u8]) {
    for f in list.into_iter().flatten() {
        match f.place {
            Place::Word(w) => w.set(to, w.get(from)),
            _ => f.set_big(to, &f.get_big(from)),
        }
    }
}
