// SPDX-License-Identifier: Apache-2.0
//! The Python class `Pipeline`.

use std::path::PathBuf;

use num_bigint::BigUint;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use softswitch_coverage::{Sources, save};
use softswitch_pipeline as ss;
use softswitch_pipeline::{
    ActionId, CloneSession, CounterValue, Entry, EntryAction, Group, GroupMember, Implementation,
    MeterConfig, Nanos, ProfileId, Replica, TableId, TableInfo,
};

use crate::convert::{number, value};
use crate::describe::{names, writable};
use crate::entries::{call, describe, describe_call, key, known};
use crate::error;
use crate::program::Program;
use crate::trace::Trace;

/// A program with its state: entries, registers, counters. Packets pass through it without queues.
#[pyclass(module = "softswitch")]
pub struct Pipeline {
    #[pyo3(get)]
    program: Py<Program>,
    info: ss::Info,
    inner: ss::Pipeline,
    now: Nanos,
}

/// The destination of a copy: a port, or a port and an instance.
#[derive(FromPyObject)]
enum Copy {
    Port(u32),
    Instance(u32, u16),
}

fn replicas(copies: Vec<Copy>) -> Vec<Replica> {
    let replica = |c| match c {
        Copy::Port(port) => Replica { port, instance: 0 },
        Copy::Instance(port, instance) => Replica { port, instance },
    };
    copies.into_iter().map(replica).collect()
}

impl Pipeline {
    fn table(&self, name: &str) -> PyResult<(TableId, &TableInfo)> {
        let names: Vec<&str> = writable(&self.info).map(|t| t.name.as_str()).collect();
        let id = known(self.info.table(name), "table", name, &names)?;
        Ok((id, &self.info.tables[id.index()]))
    }

    fn register_id(&self, name: &str) -> PyResult<ss::RegisterId> {
        let names = names(&self.info.registers, |r| &r.name);
        known(self.info.register(name), "register", name, &names)
    }

    fn counter_id(&self, name: &str) -> PyResult<ss::CounterId> {
        let names = names(&self.info.counters, |c| &c.name);
        known(self.info.counter(name), "counter", name, &names)
    }

    fn meter_id(&self, name: &str) -> PyResult<ss::MeterId> {
        let names = names(&self.info.meters, |m| &m.name);
        known(self.info.meter(name), "meter", name, &names)
    }

    /// Returns a profile and the actions of the tables that use it.
    fn profile(&self, name: &str) -> PyResult<(ProfileId, Vec<(String, ActionId)>)> {
        let names = names(&self.info.profiles, |p| &p.name);
        let id = known(self.info.profile(name), "action profile", name, &names)?;
        let users = self.info.tables.iter();
        let users = users.filter(|t| t.implementation == Implementation::Profile(id));
        Ok((id, users.flat_map(|t| t.actions.clone()).collect()))
    }

    /// Builds an entry from the arguments of `insert` and `modify`: match and priority, action and parameters, member and
    /// group.
    fn entry(
        &self,
        table: &str,
        (matches, priority): (Option<&Bound<'_, PyDict>>, i32),
        action: Option<&str>,
        params: Option<&Bound<'_, PyDict>>,
        member_or_group: (Option<u32>, Option<u32>),
    ) -> PyResult<(TableId, Entry)> {
        let (id, info) = self.table(table)?;
        let action = match (action, member_or_group) {
            (Some(name), (None, None)) => {
                EntryAction::Direct(call(&self.info, &info.actions, name, params)?)
            }
            (None, (Some(id), None)) => EntryAction::Member(id),
            (None, (None, Some(id))) => EntryAction::Group(id),
            _ => return Err(error("give exactly one of action, member and group")),
        };
        let entry = Entry {
            key: key(info, matches, priority)?,
            action,
            idle_timeout: 0,
        };
        Ok((id, entry))
    }
}

#[pymethods]
impl Pipeline {
    #[new]
    #[pyo3(signature = (program, *, seed=0, drop_port=511, cpu_port=None, pipes=1, max_resubmits=None, max_recirculations=None, max_iterations=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    fn new(
        program: Bound<'_, Program>,
        seed: u64,
        drop_port: u32,
        cpu_port: Option<u32>,
        pipes: u32,
        max_resubmits: Option<u32>,
        max_recirculations: Option<u32>,
        max_iterations: Option<u32>,
    ) -> Self {
        let inner = program.get().inner.clone();
        let limits = ss::Options::default();
        let options = ss::Options {
            seed,
            drop_port,
            cpu_port,
            pipes,
            keep_log: true,
            max_resubmits: max_resubmits.unwrap_or(limits.max_resubmits),
            max_recirculations: max_recirculations.unwrap_or(limits.max_recirculations),
            max_iterations: max_iterations.unwrap_or(limits.max_iterations),
            ..limits
        };
        Self {
            info: inner.info().clone(),
            inner: ss::Pipeline::new(inner, options),
            program: program.unbind(),
            now: 0,
        }
    }

    /// Insert an entry. `match` maps key names to matches. The entry needs an action with its parameters, or a member or
    /// group of the table's action profile. If several entries match, the one with the largest priority wins.
    #[pyo3(signature = (table, r#match=None, action=None, params=None, *, priority=0, member=None, group=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    fn insert(
        &mut self,
        table: &str,
        r#match: Option<Bound<'_, PyDict>>,
        action: Option<&str>,
        params: Option<Bound<'_, PyDict>>,
        priority: i32,
        member: Option<u32>,
        group: Option<u32>,
    ) -> PyResult<()> {
        let key = (r#match.as_ref(), priority);
        let (id, entry) = self.entry(table, key, action, params.as_ref(), (member, group))?;
        self.inner.insert_entry(id, entry, self.now).map_err(error)
    }

    /// Replace the action of the entry with this match and priority.
    #[pyo3(signature = (table, r#match=None, action=None, params=None, *, priority=0, member=None, group=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    fn modify(
        &mut self,
        table: &str,
        r#match: Option<Bound<'_, PyDict>>,
        action: Option<&str>,
        params: Option<Bound<'_, PyDict>>,
        priority: i32,
        member: Option<u32>,
        group: Option<u32>,
    ) -> PyResult<()> {
        let key = (r#match.as_ref(), priority);
        let (id, entry) = self.entry(table, key, action, params.as_ref(), (member, group))?;
        self.inner.modify_entry(id, entry, self.now).map_err(error)
    }

    /// Delete the entry with this match and priority.
    #[pyo3(signature = (table, r#match=None, *, priority=0))]
    fn delete(
        &mut self,
        table: &str,
        r#match: Option<Bound<'_, PyDict>>,
        priority: i32,
    ) -> PyResult<()> {
        let (id, info) = self.table(table)?;
        let key = key(info, r#match.as_ref(), priority)?;
        self.inner.delete_entry(id, &key).map_err(error)
    }

    /// Return the entries of a table, in order of insertion, as dictionaries: match, priority, action, params,
    /// and counter (packets, bytes) if the table counts.
    fn entries<'py>(&self, py: Python<'py>, table: &str) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let (id, info) = self.table(table)?;
        let entries = self.inner.entries(id).map_err(error)?;
        let each = entries.iter().map(|e| describe(py, &self.info, info, e));
        each.collect()
    }

    /// Set the default action; without arguments, restore the program's own.
    #[pyo3(signature = (table, action=None, params=None))]
    fn set_default(
        &mut self,
        table: &str,
        action: Option<&str>,
        params: Option<Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let (id, info) = self.table(table)?;
        let action = action
            .map(|name| call(&self.info, &info.actions, name, params.as_ref()))
            .transpose()?
            .map(EntryAction::Direct);
        self.inner.set_default_action(id, action).map_err(error)
    }

    /// Return the default entry as a dictionary: action, params, and counter (packets, bytes) if the table counts.
    fn default<'py>(&self, py: Python<'py>, table: &str) -> PyResult<Bound<'py, PyDict>> {
        let (id, _) = self.table(table)?;
        let dict = PyDict::new(py);
        match self.inner.default_action(id).map_err(error)? {
            Some(EntryAction::Direct(call)) => describe_call(&dict, &self.info, &call)?,
            Some(EntryAction::Member(id)) => dict.set_item("member", id)?,
            Some(EntryAction::Group(id)) => dict.set_item("group", id)?,
            Some(EntryAction::OneShot(_) | EntryAction::RandomOneShot(_)) | None => {
                dict.set_item("action", py.None())?
            }
        }
        if let Some(c) = self.inner.direct_counter(id, None).map_err(error)? {
            dict.set_item("counter", (c.packets, c.bytes))?;
        }
        Ok(dict)
    }

    /// Insert a member into an action profile or selector.
    #[pyo3(signature = (profile, member, action, params=None))]
    fn insert_member(
        &mut self,
        profile: &str,
        member: u32,
        action: &str,
        params: Option<Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let (id, allowed) = self.profile(profile)?;
        let call = call(&self.info, &allowed, action, params.as_ref())?;
        self.inner.insert_member(id, member, call).map_err(error)
    }

    /// Delete an unused member.
    fn delete_member(&mut self, profile: &str, member: u32) -> PyResult<()> {
        let (id, _) = self.profile(profile)?;
        self.inner.delete_member(id, member).map_err(error)
    }

    /// Insert a group of members with equal weights into an action selector.
    fn insert_group(&mut self, profile: &str, group: u32, members: Vec<u32>) -> PyResult<()> {
        let (id, _) = self.profile(profile)?;
        let member = |member| GroupMember {
            member,
            weight: 1,
            watch_port: None,
        };
        let members = Group {
            members: members.into_iter().map(member).collect(),
            max_size: 0,
        };
        self.inner.insert_group(id, group, members).map_err(error)
    }

    /// Delete an unused group.
    fn delete_group(&mut self, profile: &str, group: u32) -> PyResult<()> {
        let (id, _) = self.profile(profile)?;
        self.inner.delete_group(id, group).map_err(error)
    }

    /// Return packets and bytes of a counter's cell.
    fn counter(&self, name: &str, index: usize) -> PyResult<(u64, u64)> {
        let id = self.counter_id(name)?;
        let c = self.inner.counter(id, index).map_err(error)?;
        Ok((c.packets, c.bytes))
    }

    /// Set a counter's cell.
    fn set_counter(&mut self, name: &str, index: usize, packets: u64, bytes: u64) -> PyResult<()> {
        let id = self.counter_id(name)?;
        let value = CounterValue { packets, bytes };
        self.inner.set_counter(id, index, value).map_err(error)
    }

    /// Return a register's cell.
    fn register(&self, name: &str, index: usize) -> PyResult<BigUint> {
        let id = self.register_id(name)?;
        let v = self.inner.register(id, index).map_err(error)?;
        Ok(number(&v))
    }

    /// Set a register's cell.
    fn set_register(&mut self, name: &str, index: usize, v: Bound<'_, PyAny>) -> PyResult<()> {
        let id = self.register_id(name)?;
        let v = value(&v)?;
        self.inner.set_register(id, index, &v).map_err(error)
    }

    /// Configure a meter's cell (RFC 2698): committed and peak rate per second, with their bursts, in bytes or
    /// packets, depending on the meter's declaration.
    fn set_meter(
        &mut self,
        name: &str,
        index: usize,
        cir: u64,
        cburst: u64,
        pir: u64,
        pburst: u64,
    ) -> PyResult<()> {
        let id = self.meter_id(name)?;
        let config = MeterConfig {
            cir,
            cburst,
            pir,
            pburst,
            eburst: 0,
        };
        let set = self.inner.set_meter(id, index, Some(config));
        set.map_err(error)
    }

    /// Set the copies of a multicast group: ports, or pairs of port and instance.
    fn set_multicast_group(&mut self, group: u32, copies: Vec<Copy>) -> PyResult<()> {
        let known = self.inner.multicast_groups();
        let copies = replicas(copies);
        let set = if known.iter().any(|(id, _)| *id == group) {
            self.inner.modify_multicast_group(group, copies)
        } else {
            self.inner.insert_multicast_group(group, copies)
        };
        set.map_err(error)
    }

    /// Delete a multicast group.
    fn delete_multicast_group(&mut self, group: u32) -> PyResult<()> {
        self.inner.delete_multicast_group(group).map_err(error)
    }

    /// Set the copies of a clone session, and the length in bytes to which they are truncated (0: not at all).
    #[pyo3(signature = (session, copies, *, truncate_to=0, class_of_service=0))]
    fn set_clone_session(
        &mut self,
        session: u32,
        copies: Vec<Copy>,
        truncate_to: u32,
        class_of_service: u8,
    ) -> PyResult<()> {
        let known = self.inner.clone_sessions();
        let config = CloneSession {
            replicas: replicas(copies),
            truncate_to,
            class_of_service,
        };
        let set = if known.iter().any(|(id, _)| *id == session) {
            self.inner.modify_clone_session(session, config)
        } else {
            self.inner.insert_clone_session(session, config)
        };
        set.map_err(error)
    }

    /// Delete a clone session.
    fn delete_clone_session(&mut self, session: u32) -> PyResult<()> {
        self.inner.delete_clone_session(session).map_err(error)
    }

    /// Process a frame received on a port, and return port and frame of each transmitted packet, in order. Queues are
    /// empty, and links have no delay. The time is in nanoseconds; by default, it is the last packet's time.
    #[pyo3(signature = (frame, port=0, time_ns=None))]
    fn send<'py>(
        &mut self,
        py: Python<'py>,
        frame: Vec<u8>,
        port: u32,
        time_ns: Option<Nanos>,
    ) -> Vec<(u32, Bound<'py, PyBytes>)> {
        self.now = time_ns.unwrap_or(self.now);
        let sent = self.inner.process(port, &frame, self.now);
        let each = sent.iter().map(|(port, f)| (*port, PyBytes::new(py, f)));
        each.collect()
    }

    /// Return the digests since the last call, oldest first: the list's name, and its values.
    fn take_digests(&mut self) -> Vec<(String, Vec<BigUint>)> {
        let taken = self.inner.take_digests();
        let each = taken.iter().map(|d| {
            let name = self.info.digests[d.id.index()].name.clone();
            (name, d.fields.iter().map(number).collect())
        });
        each.collect()
    }

    /// Return the lines of log_msg since the last call.
    fn take_log(&mut self) -> Vec<String> {
        self.inner.take_log()
    }

    /// True if packets are traced.
    #[getter]
    fn tracing(&self) -> bool {
        self.inner.is_tracing()
    }

    #[setter]
    fn set_tracing(&mut self, on: bool) {
        self.inner.set_tracing(on);
    }

    /// Return the trace since the last call, or since tracing was turned on.
    fn take_trace(&mut self) -> Trace {
        Trace::new(self.inner.take_trace())
    }

    /// True if packets are counted for coverage. Setting it to True resets the counts.
    #[getter]
    fn coverage(&self) -> bool {
        self.inner.has_coverage()
    }

    #[setter]
    fn set_coverage(&mut self, on: bool) {
        self.inner.set_coverage(on);
    }

    /// Add the counts since coverage was turned on to an LCOV file, and to a page beside it, and reset them. Return the source
    /// files that have changed, whose earlier counts are dropped.
    ///
    /// Raises Error if coverage is off, and OSError if a file cannot be written.
    fn save_coverage(&mut self, path: PathBuf) -> PyResult<Vec<String>> {
        let counts = self.inner.coverage();
        let counts =
            counts.ok_or_else(|| error("coverage is off: set pipeline.coverage = True"))?;
        let changed = save(&path, &counts, &Sources::of(None))?;
        self.inner.set_coverage(true);
        Ok(changed)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let program = self.program.bind(py).repr()?;
        Ok(format!("<softswitch.Pipeline of {program}>"))
    }
}
