// SPDX-License-Identifier: Apache-2.0
//! A loaded program, with all names resolved to indices and offsets.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value as Json;

use crate::action::{Op, Target};
use crate::calculation::Calculation;
use crate::entry::Entry;
use crate::error::LoadError;
use crate::expr::{Cond, Env};
use crate::info::{Info, MeterUnit};
use crate::layout::{HeaderId, Layout};
use crate::load;
use crate::native::Native;
use crate::parser::Parser;
use crate::phv::Field;
use crate::table::{Call, ComputedPart, KeyPart, KeyShape};
use crate::trace::Places;

/// A loaded program without state; cheap to clone.
#[derive(Debug, Clone)]
pub struct Program(pub(crate) Arc<Compiled>);

impl Program {
    /// Compiles BMv2 JSON (format 2.x, v1model).
    pub fn load(json: &str) -> Result<Program, LoadError> {
        let document: Json = serde_json::from_str(json).map_err(|e| LoadError {
            path: ".".to_owned(),
            message: format!("not JSON: {e}"),
        })?;
        load::program(&document).map(|c| Program(Arc::new(c)))
    }

    /// Compiles the program to native code, unless that has been done.
    pub(crate) fn compile(&self) {
        self.0.native.get_or_init(|| Native::compile(&self.0));
    }

    /// Returns the program's description for the control plane.
    pub fn info(&self) -> &Info {
        &self.0.info
    }
}

/// The end of a pipeline.
pub(crate) const END: u32 = u32::MAX;

/// One step of a control flow.
#[derive(Debug, Clone)]
pub(crate) enum ControlNode {
    Table(u32),
    Condition { cond: Cond, then: u32, other: u32 },
    Call { call: Call, next: u32 },
}

/// The successor of a table.
#[derive(Debug, Clone)]
pub(crate) enum Next {
    Always(u32),
    HitMiss(u32, u32),
    /// By action; the last successor applies if no action runs.
    ByAction(Vec<(u32, u32)>, u32),
}

impl Next {
    #[inline]
    pub(crate) fn after(&self, hit: bool, action: Option<u32>) -> u32 {
        match self {
            Next::Always(n) => *n,
            Next::HitMiss(h, m) => *if hit { h } else { m },
            Next::ByAction(list, none) => {
                let found = list.iter().find(|(a, _)| Some(*a) == action);
                found.map_or(*none, |&(_, n)| n)
            }
        }
    }
}

/// The fixed part of a table.
#[derive(Debug, Clone)]
pub(crate) struct CompiledTable {
    pub(crate) shape: KeyShape,
    pub(crate) key: Vec<KeyPart>,
    /// The rest of the key: fields of headers computed at run time.
    pub(crate) computed_key: Vec<ComputedPart>,
    pub(crate) next: Next,
    pub(crate) profile: Option<u32>,
    /// Unit of the direct meter, and the field for its colour.
    pub(crate) meter: Option<(MeterUnit, Target)>,
    /// Entries and default action that the program defines.
    pub(crate) entries: Vec<Entry>,
    pub(crate) default: Option<Call>,
}

impl CompiledTable {
    /// Builds a packet's lookup key.
    #[inline]
    pub(crate) fn load_key(&self, env: &Env, key: &mut Vec<u64>) {
        key.clear();
        key.resize(self.shape.words, 0);
        for part in &self.key {
            part.load(env.mem, key);
        }
        for part in &self.computed_key {
            part.load(env, key);
        }
    }
}

/// The fixed part of an action.
#[derive(Debug, Clone)]
pub(crate) struct Action {
    pub(crate) ops: Vec<Op>,
}

/// A checksum in a header.
#[derive(Debug, Clone)]
pub(crate) struct Checksum {
    pub(crate) header: HeaderId,
    pub(crate) field: Field,
    pub(crate) calculation: u32,
    pub(crate) condition: Option<Cond>,
    pub(crate) verify: bool,
    pub(crate) update: bool,
}

/// A program in executable form.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) info: Info,
    pub(crate) layout: Layout,
    pub(crate) parser: Parser,
    pub(crate) nodes: Vec<ControlNode>,
    pub(crate) ingress: u32,
    pub(crate) egress: u32,
    pub(crate) tables: Vec<CompiledTable>,
    pub(crate) actions: Vec<Action>,
    pub(crate) calculations: Vec<Calculation>,
    /// The selector hash of each action profile.
    pub(crate) selectors: Vec<Option<Calculation>>,
    pub(crate) checksums: Vec<Checksum>,
    /// Headers in the order in which they are emitted, and what runs before.
    pub(crate) deparser: Vec<HeaderId>,
    pub(crate) deparser_ops: Vec<Op>,
    pub(crate) field_lists: HashMap<u32, Vec<Field>>,
    pub(crate) digests: Vec<Vec<Field>>,
    pub(crate) places: Places,
    /// The native code, compiled on first use; `None` if the host is not supported.
    pub(crate) native: OnceLock<Option<Native>>,
}
