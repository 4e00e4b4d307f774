// SPDX-License-Identifier: Apache-2.0
//! The recorder: the current pass, and the changes since the last comparison.

use std::sync::Arc;

use super::names::{contents, field_value, qualified, visible};
use super::{Named, Outcome, Pass, Step, Trace};
use crate::Nanos;
use crate::info::Info;
use crate::packet::InstanceType;
use crate::phv::Field;
use crate::program::layout::Layout;
use crate::program::source::SourceLocation;

/// Number of packets whose copies are counted at the same time. The copies of older packets begin at 1 again.
const COPIED_PACKETS: usize = 64;

/// Collects traces while tracing is on.
#[derive(Debug)]
pub(crate) struct Recorder {
    info: Arc<Info>,
    /// Number of the latest packet.
    packets: u64,
    /// Time at which the last pass began.
    pub(super) time: Nanos,
    pub(super) current: Option<Trace>,
    done: Vec<Trace>,
    /// Headers and metadata at the last comparison.
    pub(super) before: Vec<u8>,
    /// The action that ran last.
    pub(super) action: Option<String>,
    /// The field whose changes may drop the packet.
    pub(super) fate: Option<Field>,
    /// The action that last changed it.
    pub(super) fate_by: Option<String>,
    /// Positions of the primitives of the action that runs.
    pub(super) primitives: Option<Arc<[Option<SourceLocation>]>>,
    /// Packet numbers, and numbers of their latest copies, of the latest packets by their number.
    copies: [(u64, u32); COPIED_PACKETS],
    /// True while a clone is parsed, which repeats the original's steps.
    pub(super) muted: bool,
}

impl Recorder {
    pub(crate) fn new(info: Arc<Info>) -> Self {
        Self {
            info,
            packets: 0,
            time: 0,
            current: None,
            done: Vec::new(),
            before: Vec::new(),
            action: None,
            fate: None,
            fate_by: None,
            primitives: None,
            copies: [(0, 0); COPIED_PACKETS],
            muted: false,
        }
    }

    /// Returns the number of a new copy of a packet.
    pub(super) fn next_copy(&mut self, packet: u64) -> u32 {
        let latest = &mut self.copies[packet as usize % COPIED_PACKETS];
        if latest.0 != packet {
            *latest = (packet, 0);
        }
        latest.1 += 1;
        latest.1
    }

    pub(super) fn next_packet(&mut self) -> u64 {
        self.packets += 1;
        self.packets
    }

    pub(super) fn begin(
        &mut self,
        (packet, copy): (u64, u32),
        pass: Pass,
        port: u32,
        instance: InstanceType,
        time_ns: Nanos,
        length: u32,
    ) {
        self.fate_by = None;
        self.time = time_ns;
        self.current = Some(Trace {
            packet,
            copy,
            pass,
            port,
            instance,
            time_ns,
            length,
            steps: Vec::new(),
            outcome: Outcome::Recirculated,
            enqueued: Vec::new(),
        });
    }

    pub(super) fn end(&mut self) {
        self.done.extend(self.current.take());
    }

    pub(crate) fn take(&mut self) -> Vec<Trace> {
        std::mem::take(&mut self.done)
    }

    /// Returns the names and types of the program's objects.
    pub(crate) fn info(&self) -> &Info {
        &self.info
    }

    pub(crate) fn push(&mut self, step: Step) {
        if let Some(current) = self.current.as_mut().filter(|_| !self.muted) {
            current.steps.push(step);
        }
    }

    pub(crate) fn push_extern(&mut self, call: &'static str, args: Vec<(&str, String)>) {
        let named = args
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        let args = Named(named.collect());
        self.push(Step::Extern { call, args });
    }

    /// Makes the current contents the basis of the next comparison.
    pub(crate) fn look(&mut self, mem: &[u8]) {
        if self.muted {
            return;
        }
        self.before.clear();
        self.before.extend_from_slice(mem);
        self.action = None;
        self.primitives = None;
    }

    /// Records that a primitive of the current action runs.
    pub(crate) fn primitive(&mut self, index: usize) {
        let primitives = self.primitives.as_ref();
        if let Some(source) = primitives.and_then(|p| p.get(index)).cloned() {
            self.push(Step::Primitive(source));
        }
    }

    /// Records the changes since the last comparison. In the parser, a header that became valid was extracted.
    pub(crate) fn changes(&mut self, layout: &Layout, mem: &[u8], parsing: bool) {
        self.primitives = None;
        if self.muted || self.before == mem {
            return;
        }
        let before = std::mem::take(&mut self.before);
        let mut steps = Vec::new();
        for h in &layout.headers {
            let (was, is) = (h.is_valid(&before), h.is_valid(mem));
            let header = h.name.clone();
            match (h.metadata || was, h.metadata || is) {
                (false, false) => {}
                (false, true) if parsing => steps.push(Step::Extract {
                    fields: contents(h, mem),
                    header,
                }),
                (false, true) => steps.push(Step::HeaderAdded {
                    fields: contents(h, mem),
                    header,
                }),
                (true, false) => steps.push(Step::HeaderRemoved { header }),
                (true, true) => {
                    for (f, name) in visible(h) {
                        let (from, to) = (field_value(f, &before), field_value(f, mem));
                        if from != to {
                            let field = qualified(h, name);
                            steps.push(Step::Changed { field, from, to });
                        }
                    }
                }
            }
        }
        if parsing {
            // Extracted headers come first, because computed fields depend on them.
            steps.sort_by_key(|s| !matches!(s, Step::Extract { .. }));
        }
        steps.into_iter().for_each(|s| self.push(s));
        if let Some(fate) = self.fate
            && fate.get64(&before) != fate.get64(mem)
        {
            self.fate_by = self.action.clone();
        }
        self.before = before;
        self.before.clear();
        self.before.extend_from_slice(mem);
    }
}
