// SPDX-License-Identifier: Apache-2.0
//! Records steps of the parser and the control flow.

use super::names::{field_name, matches, value};
use super::{Call, Emitted, Hit, Named, Recorder, Step};
use crate::entry::EntryKey;
use crate::packet::Packet;
use crate::program::call::CallRef;
use crate::program::call::unpack;
use crate::program::layout::{Header, Layout};
use crate::program::parser::ParserState;
use crate::program::{Checksum, Compiled, Deparser};
use crate::value::Value;

impl Recorder {
    pub(crate) fn parser_state(&mut self, state: &ParserState) {
        self.push(Step::ParserState {
            state: state.name.clone(),
        });
    }

    pub(crate) fn parser_error(&mut self, c: &Compiled, code: u64) {
        let known = c.info.errors.iter().find(|e| e.1 == code);
        self.push(Step::ParserError {
            error: known.map_or_else(|| code.to_string(), |e| e.0.clone()),
        });
    }

    pub(crate) fn checksum(&mut self, layout: &Layout, sum: &Checksum, found: u64, computed: u64) {
        let shown = |v: u64| value(&Value::from(v), sum.field.width);
        self.push(Step::Checksum {
            field: field_name(layout, &sum.field),
            found: shown(found),
            computed: shown(computed),
            correct: found == computed,
        });
    }

    pub(crate) fn condition(&mut self, c: &Compiled, node: u32, holds: bool) {
        let (name, source) = c.source.nodes[node as usize].clone();
        self.push(Step::Condition {
            name,
            source,
            holds,
        });
    }

    fn call(&mut self, c: &Compiled, call: CallRef) -> Call {
        let info = &c.info.actions[call.action as usize];
        let args = unpack(&c.info, call).args;
        let named = info.params.iter().zip(&args);
        self.action = Some(info.name.clone());
        self.primitives = c.source.primitives.get(call.action as usize).cloned();
        Call {
            name: info.name.clone(),
            args: Named(
                named
                    .map(|((name, width), v)| (name.clone(), value(v, *width)))
                    .collect(),
            ),
            source: c.source.actions[call.action as usize].clone(),
        }
    }

    pub(crate) fn action(&mut self, c: &Compiled, call: CallRef) {
        let call = self.call(c, call);
        self.push(Step::Action(call));
    }

    pub(crate) fn table(
        &mut self,
        c: &Compiled,
        number: u32,
        key: &[Value],
        entry: Option<(u32, EntryKey)>,
        (call, member): (Option<CallRef>, Option<u32>),
    ) {
        let info = &c.info.tables[number as usize];
        let key = info.key.iter().zip(key);
        let hit = entry.map(|(handle, e)| Hit {
            handle,
            matches: matches(&info.key, &e),
            priority: info.needs_priority.then_some(e.priority),
        });
        self.action = None;
        self.primitives = None;
        let step = Step::Table {
            table: info.name.clone(),
            widths: info.key.iter().map(|k| k.width).collect(),
            key: Named(
                key.map(|(k, v)| (k.name.clone(), value(v, k.width)))
                    .collect(),
            ),
            hit,
            member,
            action: call.map(|call| self.call(c, call)),
        };
        self.push(step);
    }

    pub(crate) fn deparse(
        &mut self,
        c: &Compiled,
        deparser: &Deparser,
        pkt: &Packet,
        frame: &[u8],
    ) {
        if self.before != pkt.mem {
            self.push(Step::UpdateChecksums);
            self.changes(&c.layout, &pkt.mem, false);
        }
        let headers = deparser
            .headers
            .iter()
            .map(|&h| &c.layout.headers[h as usize]);
        let emitted = |h: &Header| Emitted {
            header: h.name.clone(),
            bytes: h.wire_bytes(&pkt.mem),
        };
        let valid = headers.filter(|h| h.is_valid(&pkt.mem));
        let headers: Vec<Emitted> = valid.map(emitted).collect();
        let bytes: usize = headers.iter().map(|e| e.bytes).sum();
        self.push(Step::Deparse {
            payload: frame.len().saturating_sub(bytes),
            length: frame.len(),
            headers,
        });
    }

    /// Records a resubmission with its field list.
    pub(crate) fn resubmitted(&mut self, list: Option<u32>) {
        let list = list.map(|list| ("field_list", list.to_string()));
        self.push_extern("resubmit", list.into_iter().collect());
    }

    /// Records a digest of these values.
    pub(crate) fn digest(&mut self, c: &Compiled, number: u32, fields: &[Value]) {
        let info = &c.info.digests[number as usize];
        let list = &c.digests[number as usize];
        let names = list.iter().map(|f| field_name(&c.layout, f));
        let values = fields.iter().zip(&info.fields).map(|(v, w)| value(v, *w));
        let mut args = vec![("list".to_owned(), info.name.clone())];
        args.extend(names.zip(values));
        self.push(Step::Extern {
            call: "digest",
            args: Named(args),
        });
    }
}
