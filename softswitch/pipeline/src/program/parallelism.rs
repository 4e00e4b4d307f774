// SPDX-License-Identifier: Apache-2.0
//! Decides at load time whether packets of a program can run in parallel, and which of them must take turns.

use std::collections::BTreeSet;
use std::fmt;

use super::Compiled;
use super::locks::{access, written};
use super::op::Op;
use super::parser::ParserOp;
use crate::program::architecture::Architecture;
use crate::program::hash::Hash;

/// How threads share the state of a program.
///
/// The text of [`Display`](fmt::Display) is the report of `softswitch --report`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parallelism {
    /// Why the packets run one after the other; empty if they can run in parallel.
    pub obstacles: Vec<String>,
    /// The registers of each lock. A packet holds it from its first access until its control can no longer access one of
    /// them.
    pub locks: Vec<Vec<String>>,
    /// The registers without a lock: a packet accesses each at most once per control, or only the control plane writes
    /// them.
    pub lock_free_registers: Vec<String>,
    /// The meters. Each cell has a lock, which a packet holds while it is metered.
    pub meters: Vec<String>,
    /// The program draws random numbers. Each thread has its own sequence.
    pub has_random_numbers: bool,
}

impl Parallelism {
    /// Returns true if packets can run in parallel.
    pub fn is_parallel(&self) -> bool {
        self.obstacles.is_empty()
    }
}

impl fmt::Display for Parallelism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_parallel() {
            writeln!(f, "Packets run one after the other:")?;
            return self.obstacles.iter().try_for_each(|o| writeln!(f, "  {o}"));
        }
        writeln!(f, "Packets of several threads can run in parallel.")?;
        let list = |f: &mut fmt::Formatter<'_>, title: &str, names: &[String]| {
            if names.is_empty() {
                return Ok(());
            }
            writeln!(f, "{title}:")?;
            names.iter().try_for_each(|name| writeln!(f, "  {name}"))
        };
        for registers in &self.locks {
            list(f, "Registers with one lock", registers)?;
        }
        list(f, "Registers without a lock", &self.lock_free_registers)?;
        list(f, "Meters with a lock for each cell", &self.meters)?;
        if self.has_random_numbers {
            writeln!(f, "Random numbers: a sequence for each thread")?;
        }
        Ok(())
    }
}

impl Compiled {
    /// Returns how threads share the state of the program.
    pub(crate) fn parallelism(&self) -> Parallelism {
        let info = &self.info;
        let name = |register: &u32| info.registers[*register as usize].name.clone();
        let groups = self
            .locks
            .registers
            .iter()
            .filter(|group| !group.is_empty());
        let locked: BTreeSet<u32> = groups.clone().flatten().copied().collect();
        let registers = 0..info.registers.len() as u32;
        let lock_free = registers.filter(|register| !locked.contains(register));
        let direct = info
            .tables
            .iter()
            .filter_map(|t| t.direct_meter_name.clone());
        let mut meters: Vec<String> = info.meters.iter().map(|m| m.name.clone()).collect();
        meters.extend(direct.collect::<BTreeSet<_>>());
        let mut ops = self.actions.iter().flat_map(|a| &a.ops);
        Parallelism {
            obstacles: self.obstacles(),
            locks: groups
                .map(|group| group.iter().map(name).collect())
                .collect(),
            lock_free_registers: lock_free.map(|register| name(&register)).collect(),
            meters,
            has_random_numbers: ops.any(|op| matches!(op, Op::Random { .. })),
        }
    }

    fn obstacles(&self) -> Vec<String> {
        let info = &self.info;
        let mut obstacles = Vec::new();
        if !matches!(self.architecture, Architecture::V1Model(_)) {
            obstacles.push(format!(
                "architecture {}: only programs of v1model run in parallel",
                self.architecture.name()
            ));
        }
        for r in info.registers.iter().filter(|r| r.width > u64::BITS) {
            let (name, width) = (&r.name, r.width);
            obstacles.push(format!(
                "register {name}: its cells have {width} bits, but threads share only cells of up to 64 bits"
            ));
        }
        if !info.direct_registers.is_empty() || !info.filters.is_empty() {
            obstacles.push("direct registers and filters: threads do not share them".to_owned());
        }
        if self.has_register_expressions && !written(&self.actions).is_empty() {
            obstacles
                .push("expressions read registers: only steps of actions take locks".to_owned());
        }
        if self.accesses_registers_outside_actions() {
            obstacles.push(
                "a parser or deparser accesses a register or a meter: only actions take locks"
                    .to_owned(),
            );
        }
        let selectors = self.selectors.iter().flatten();
        let mut calculations = self.calculations.iter().chain(selectors);
        if calculations.any(|c| c.hash == Hash::RoundRobin) {
            obstacles.push("hash round_robin: its value depends on all earlier packets".to_owned());
        }
        obstacles
    }

    fn accesses_registers_outside_actions(&self) -> bool {
        let parsers = self.parser.states.iter().flat_map(|state| &state.ops);
        let in_parsers = parsers.flat_map(|op| match op {
            ParserOp::Run(ops) => &ops[..],
            _ => &[],
        });
        let in_deparsers = self.deparsers.iter().flat_map(|d| &d.ops);
        let mut ops = in_parsers.chain(in_deparsers);
        ops.any(|op| access(op).is_some() || matches!(op, Op::ExecuteMeter { .. }))
    }
}
