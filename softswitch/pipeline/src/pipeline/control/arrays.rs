// SPDX-License-Identifier: Apache-2.0
//! Counters, meters, registers, value sets, packet replication, digests and log.

use super::no_such;
use crate::coverage::{Counts, Coverage};
use crate::digest::Digest;
use crate::entry::{CounterValue, EntryKey, MatchField, MeterConfig};
use crate::error::StateError;
use crate::info::{CounterId, KeyInfo, MatchKind, MeterId, RegisterId, ValueSetId};
use crate::pipeline::Pipeline;
use crate::program::key::KeyShape;
use crate::state::meter::Meter;
use crate::state::pre::{CloneSession, Replica};
use crate::state::{Register, SetMember};
use crate::trace::{Recorder, Trace};
use crate::value::Value;

type Result<T> = std::result::Result<T, StateError>;

fn out_of_range(kind: &str, name: &str, index: usize, size: usize) -> StateError {
    StateError::IndexOutOfRange {
        what: format!("{kind} {name}"),
        index,
        size,
    }
}

/// Refuses a configuration whose peak is below its committed rate, or that mixes one rate and two.
pub(super) fn check_meter(what: &str, config: Option<MeterConfig>) -> Result<()> {
    let reason = match config {
        Some(c) if c.pir < c.cir => format!(
            "the peak rate {} is below the committed rate {}",
            c.pir, c.cir
        ),
        Some(c) if c.eburst > 0 && (c.pir, c.pburst) != (c.cir, c.cburst) => {
            "an excess burst needs a single rate: peak rate and burst must equal the committed ones"
                .into()
        }
        _ => return Ok(()),
    };
    Err(StateError::Invalid {
        what: what.to_owned(),
        reason,
    })
}

impl Pipeline {
    /// Reads a cell of an indirect counter, summed over the pipes.
    pub fn counter(&self, id: CounterId, index: usize) -> Result<CounterValue> {
        let info = self
            .program
            .info()
            .counters
            .get(id.index())
            .ok_or_else(|| no_such("counter", id.0))?;
        let cells = self.states().map(|s| &s.externs.counters[id.index()]);
        let cells = cells.map(|cells| cells.get(index).copied());
        let sum = cells.reduce(|sum, cell| Some(sum? + cell?)).flatten();
        let sum = sum.ok_or_else(|| out_of_range("counter", &info.name, index, info.size))?;
        let lanes = self.lanes.iter();
        let cells = lanes.filter_map(|lane| lane.arrays.get(id.index())?.get(index));
        Ok(cells.fold(sum, |sum, &cell| sum + cell))
    }

    /// Writes a cell of an indirect counter, such that a read gives this value.
    pub fn set_counter(&mut self, id: CounterId, index: usize, value: CounterValue) -> Result<()> {
        self.counter(id, index)?;
        let mut value = value;
        self.change(|p| {
            // The sum over the pipes is the value of the first one.
            p.core.state.externs.counters[id.index()][index] = std::mem::take(&mut value);
            Ok(())
        })?;
        for lane in &mut self.lanes {
            if let Some(cell) = lane.array(id.index(), index) {
                *cell = CounterValue::default();
            }
        }
        Ok(())
    }

    fn meter_cell(&self, id: MeterId, index: usize) -> Result<Meter> {
        let info = self
            .program
            .info()
            .meters
            .get(id.index())
            .ok_or_else(|| no_such("meter", id.0))?;
        let cell = self.state().externs.meters[id.index()].1.get(index);
        let meter = cell.map(|cell| cell.lock().clone());
        meter.ok_or_else(|| out_of_range("meter", &info.name, index, info.size))
    }

    /// Returns the configuration of a cell of an indirect meter, if it was configured.
    pub fn meter(&self, id: MeterId, index: usize) -> Result<Option<MeterConfig>> {
        Ok(self.meter_cell(id, index)?.config())
    }

    /// Configures a cell of an indirect meter; `None` makes every packet green again.
    pub fn set_meter(
        &mut self,
        id: MeterId,
        index: usize,
        config: Option<MeterConfig>,
    ) -> Result<()> {
        self.meter_cell(id, index)?;
        check_meter(
            &format!("meter {}", self.program.info().meters[id.index()].name),
            config,
        )?;
        self.change(|p| {
            p.meter_mut(id, index).configure(config);
            Ok(())
        })
    }

    fn register_array(&self, id: RegisterId) -> Result<&Register> {
        let info = self.program.info().registers.get(id.index());
        let info = info.ok_or_else(|| no_such("register", id.0))?;
        Ok(&self.state_of(&info.name).externs.registers[id.index()])
    }

    /// Reads a register cell.
    pub fn register(&self, id: RegisterId, index: usize) -> Result<Value> {
        let r = self.register_array(id)?;
        let bytes = r.bytes(index).map(|b| Value::from_be_bytes(&b));
        let name = &self.program.info().registers[id.index()].name;
        bytes.ok_or_else(|| out_of_range("register", name, index, r.len()))
    }

    /// Writes a register cell.
    pub fn set_register(&mut self, id: RegisterId, index: usize, value: &Value) -> Result<()> {
        self.register(id, index)?;
        let info = &self.program.info().registers[id.index()];
        if value.bits() > info.width {
            return Err(StateError::TooWide {
                what: format!("register {}", info.name),
                value: value.clone(),
                width: info.width,
            });
        }
        let v = num_bigint::BigUint::from_bytes_be(value.as_bytes());
        self.change(|p| {
            p.core.state.externs.registers.write()[id.index()].set_big(index, v.clone());
            Ok(())
        })
    }

    /// Sets all cells of a register to the initial value, which is zero unless the program defines another.
    pub fn reset_register(&mut self, id: RegisterId) -> Result<()> {
        self.register_array(id)?;
        self.change(|p| {
            p.core.state.externs.registers.write()[id.index()].reset();
            Ok(())
        })
    }

    /// Returns the members of a parser value set. A member has one match per field of the `select` key:
    /// exact, ternary, LPM, range or optional.
    pub fn value_set(&self, id: ValueSetId) -> Result<Vec<Vec<MatchField>>> {
        let set = self
            .state()
            .value_sets
            .get(id.index())
            .ok_or_else(|| no_such("value set", id.0))?;
        Ok(set
            .iter()
            .map(|m| m.shape.describe(&m.criteria).fields)
            .collect())
    }

    /// Replaces the members of a parser value set.
    pub fn set_value_set(&mut self, id: ValueSetId, members: Vec<Vec<MatchField>>) -> Result<()> {
        let info = self.program.info();
        let info = info
            .value_sets
            .get(id.index())
            .ok_or_else(|| no_such("value set", id.0))?;
        let mut set = Vec::new();
        for fields in members {
            let keys = fields.iter().zip(&info.fields).map(|(f, &width)| KeyInfo {
                name: info.name.clone(),
                kind: kind(f),
                width,
            });
            let shape = KeyShape::new(&info.name, &keys.collect::<Vec<_>>());
            if fields.len() != info.fields.len() {
                return Err(StateError::Invalid {
                    what: format!("value set {}", info.name),
                    reason: format!(
                        "{} fields given, but {} declared",
                        fields.len(),
                        info.fields.len()
                    ),
                });
            }
            let priority = i32::from(shape.needs_priority);
            let criteria = shape.encode(&EntryKey { fields, priority })?;
            set.push(SetMember { shape, criteria });
        }
        self.change(|p| {
            p.core.state.value_sets.write()[id.index()] = set.clone();
            Ok(())
        })
    }

    /// Sets the replicas that replace each replica of a multicast group while its port is down, the preferred one first.
    /// Without a port that is up, the replica itself stays. A change of the group removes its backups.
    pub fn set_multicast_backups(&mut self, id: u32, backups: Vec<Vec<Replica>>) -> Result<()> {
        let state = &mut *self.core.state;
        let down = &state.ports_down;
        state.pre.write().set_group_backups(id, backups, down)
    }

    /// Sets the backups of a clone session's replicas, as [`Self::set_multicast_backups`] does.
    pub fn set_clone_backups(&mut self, id: u32, backups: Vec<Vec<Replica>>) -> Result<()> {
        let state = &mut *self.core.state;
        state
            .pre
            .write()
            .set_session_backups(id, backups, &state.ports_down)
    }

    /// Inserts a multicast group. Ids are 1..=65535.
    pub fn insert_multicast_group(&mut self, id: u32, replicas: Vec<Replica>) -> Result<()> {
        self.core.state.pre.write().set_group(id, replicas, false)
    }

    /// Replaces a multicast group.
    pub fn modify_multicast_group(&mut self, id: u32, replicas: Vec<Replica>) -> Result<()> {
        self.core.state.pre.write().set_group(id, replicas, true)
    }

    /// Deletes a multicast group.
    pub fn delete_multicast_group(&mut self, id: u32) -> Result<()> {
        self.core.state.pre.write().delete_group(id)
    }

    /// Returns all multicast groups, by id.
    pub fn multicast_groups(&self) -> Vec<(u32, Vec<Replica>)> {
        self.core
            .state
            .pre
            .groups()
            .map(|(id, r)| (id, r.to_vec()))
            .collect()
    }

    /// Inserts a clone session. Ids are 0..=32767.
    pub fn insert_clone_session(&mut self, id: u32, session: CloneSession) -> Result<()> {
        self.core.state.pre.write().set_session(id, session, false)
    }

    /// Replaces a clone session.
    pub fn modify_clone_session(&mut self, id: u32, session: CloneSession) -> Result<()> {
        self.core.state.pre.write().set_session(id, session, true)
    }

    /// Deletes a clone session.
    pub fn delete_clone_session(&mut self, id: u32) -> Result<()> {
        self.core.state.pre.write().delete_session(id)
    }

    /// Returns all clone sessions, by id.
    pub fn clone_sessions(&self) -> Vec<(u32, CloneSession)> {
        self.core
            .state
            .pre
            .sessions()
            .map(|(id, s)| (id, s.clone()))
            .collect()
    }

    /// Turns tracing on or off. While tracing is off, it costs one comparison per step.
    pub fn set_tracing(&mut self, on: bool) {
        let recorder = || Box::new(Recorder::new(self.program.compiled().info.clone()));
        self.core.state.externs.trace = on.then(recorder);
    }

    /// Returns true if tracing is on.
    pub fn is_tracing(&self) -> bool {
        self.core.state.externs.trace.is_some()
    }

    /// Returns the traces of the passes that ended since the last call, in order; none if tracing is off.
    pub fn take_trace(&mut self) -> Vec<Trace> {
        let trace = self.core.state.externs.trace.as_mut();
        trace.map_or_else(Vec::new, |t| t.take())
    }

    /// Turns coverage on or off. While it is on, the interpreter runs all packets. Turning it on resets the counts.
    pub fn set_coverage(&mut self, on: bool) {
        let counts = || Box::new(Counts::new(self.program.compiled()));
        self.core.state.externs.coverage = on.then(counts);
    }

    /// Returns true if coverage is on.
    pub fn has_coverage(&self) -> bool {
        self.core.state.externs.coverage.is_some()
    }

    /// Returns the counts since coverage was turned on; `None` if it is off.
    pub fn coverage(&self) -> Option<Coverage> {
        let counts = self.core.state.externs.coverage.as_ref()?;
        Some(Coverage::new(self.program.compiled(), counts))
    }

    /// Returns the digests generated since the last call, oldest first.
    pub fn take_digests(&mut self) -> Vec<Digest> {
        std::mem::take(&mut self.core.state.externs.digests)
    }

    /// Returns the lines of `log_msg` since the last call, if [`Options::keep_log`](crate::Options::keep_log) is set.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.core.state.externs.log)
    }
}

fn kind(f: &MatchField) -> MatchKind {
    match f {
        MatchField::Exact(_) => MatchKind::Exact,
        MatchField::Lpm { .. } => MatchKind::Lpm,
        MatchField::Ternary { .. } => MatchKind::Ternary,
        MatchField::Range { .. } => MatchKind::Range,
        MatchField::Optional(_) => MatchKind::Optional,
        MatchField::Valid(_) => MatchKind::Valid,
    }
}
