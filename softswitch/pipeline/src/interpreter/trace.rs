// SPDX-License-Identifier: Apache-2.0
//! Records the changes, the transitions of the parser, and the externs that an action uses.

use num_bigint::BigInt;

use super::machine::Machine;
use crate::info::Info;
use crate::phv::mask64;
use crate::phv::{Field, Place, wrap};
use crate::program::expr::Node;
use crate::program::op::{Op, SumStep, Target};
use crate::program::parser::{ACCEPT, Parser, ParserState, SelectPart};
use crate::trace::{Named, Step, field_name, field_value, value};
use crate::value::Value;

/// An extern's name, and its arguments as they are before it runs.
type Seen = (&'static str, Vec<(&'static str, String)>);

impl Machine<'_> {
    /// Records the changes by an action or the parser.
    #[inline]
    pub(crate) fn trace_changes(&mut self, parsing: bool) {
        if let Some(trace) = &mut self.externs.trace {
            trace.changes(self.layout, &self.pkt.mem, parsing);
        }
    }

    /// Records the parser's transition; `words` is the `select` key.
    pub(crate) fn trace_select(&mut self, p: &Parser, s: &ParserState, words: &[u64], next: u32) {
        let (mut key, mut widths) = (Vec::new(), Vec::new());
        for part in s.key.iter().filter(|_| !s.cases.is_empty()) {
            match part {
                SelectPart::Field(part) => {
                    let field = part.field();
                    key.push((
                        field_name(self.layout, field),
                        field_value(field, &self.pkt.mem),
                    ));
                    widths.push(field.width);
                }
                SelectPart::Dyn { field, .. } => {
                    if let Some(f) = field.resolve(&self.env(&[])) {
                        key.push((field_name(self.layout, &f), field_value(&f, &self.pkt.mem)));
                        widths.push(f.width);
                    }
                }
                SelectPart::Lookahead {
                    offset,
                    width,
                    word,
                    shift,
                } => {
                    let count = width.div_ceil(64).max(1) as usize;
                    let mut limbs = words[*word..*word + count].to_vec();
                    if let [limb] = limbs.as_mut_slice() {
                        *limb = *limb >> shift & mask64(*width);
                    }
                    let bytes: Vec<u8> = limbs.iter().flat_map(|l| l.to_be_bytes()).collect();
                    let v = value(&Value::from_be_bytes(&bytes), *width);
                    key.push((format!("lookahead({offset}, {width})"), v));
                    widths.push(*width);
                }
            }
        }
        let next = match next {
            ACCEPT => "accept".to_owned(),
            n => p
                .states
                .get(n as usize)
                .map_or_else(String::new, |s| s.name.clone()),
        };
        let parsed = self.pkt.start;
        if let Some(trace) = &mut self.externs.trace {
            trace.push(Step::Select {
                key: Named(key),
                widths,
                next,
                parsed,
            });
        }
    }

    /// Runs a step of an action and records it, if it is an extern.
    pub(crate) fn traced_step(&mut self, op: &Op, args: &[u64]) {
        let seen = self.before(op, args);
        // Evaluated before the step, because it may overwrite its own arguments.
        let written = result_of(op).and_then(|to| self.place(to, args));
        self.step(op, args);
        let Some((call, mut shown)) = seen else {
            return;
        };
        if let Some(f) = written {
            shown.push(("to", field_name(self.layout, &f)));
            shown.push(("result", field_value(&f, &self.pkt.mem)));
        }
        if let Some(trace) = &mut self.externs.trace {
            trace.push_extern(call, shown);
        }
    }

    fn place(&self, to: &Target, args: &[u64]) -> Option<Field> {
        match to {
            Target::Word(w, mask) => Some(Field {
                place: Place::Word(*w),
                width: mask.count_ones(),
                signed: false,
            }),
            Target::Field(f) => Some(*f),
            Target::Dyn(d) => d.resolve(&self.env(args)),
        }
    }

    fn info(&self) -> &Info {
        let trace = self.externs.trace.as_ref();
        trace.expect("only called while tracing").info()
    }

    fn number(&self, node: &Node<u64>, args: &[u64]) -> u64 {
        node.eval(&self.env(args))
    }

    fn before(&self, op: &Op, args: &[u64]) -> Option<Seen> {
        let number = |node| self.number(node, args).to_string();
        Some(match op {
            Op::ReadRegister {
                register, index, ..
            } => ("register_read", self.register(*register, index, args)),
            Op::WriteRegister64 {
                register,
                index,
                value: v,
            } => {
                let v = self.number(v, args);
                self.write(*register, index, args, &v.into())
            }
            Op::WriteRegisterBig {
                register,
                index,
                value: v,
            } => {
                let v: BigInt = v.eval(&self.env(args));
                self.write(*register, index, args, &v)
            }
            Op::ReadDirect { register, .. } => {
                let name = self.info().direct_registers[*register as usize]
                    .name
                    .clone();
                ("register_read", vec![("register", name)])
            }
            Op::WriteDirect { register, .. } => {
                let name = self.info().direct_registers[*register as usize]
                    .name
                    .clone();
                ("register_write", vec![("register", name)])
            }
            Op::Count { counter, index } => {
                let name = self.info().counters[*counter as usize].name.clone();
                let bytes = self.pkt.ingress_len.to_string();
                let shown = vec![
                    ("counter", name),
                    ("index", number(index)),
                    ("bytes", bytes),
                ];
                ("count", shown)
            }
            Op::ExecuteMeter { meter, index, .. } => {
                let name = self.info().meters[*meter as usize].name.clone();
                (
                    "execute_meter",
                    vec![("meter", name), ("index", number(index))],
                )
            }
            Op::Filter(call) => {
                let name = self.info().filters[call.filter as usize].name.clone();
                let mut shown = vec![("filter", name), ("value", number(&call.value))];
                shown.extend(call.index.as_ref().map(|index| ("index", number(index))));
                ("filter", shown)
            }
            Op::Math(call) => ("math_unit", vec![("value", number(&call.value))]),
            Op::Random { bounds, .. } => {
                let shown = vec![("low", number(&bounds[0])), ("high", number(&bounds[1]))];
                ("random", shown)
            }
            Op::Hash {
                calculation, range, ..
            } => {
                let hash = &self.calculations[*calculation as usize].hash;
                let mut shown = vec![("algorithm", hash.name())];
                if let Some(range) = range {
                    shown.push(("base", number(&range[0])));
                    shown.push(("size", number(&range[1])));
                }
                ("hash", shown)
            }
            Op::Sum(_, step) => {
                let call = match step {
                    SumStep::Clear => "checksum_clear",
                    SumStep::Add(_) => "checksum_add",
                    SumStep::Subtract(_) => "checksum_subtract",
                    SumStep::Get(_) => "checksum_get",
                    SumStep::Verify(..) => "checksum_verify",
                    SumStep::GetState(_) => "checksum_get_state",
                    SumStep::SetState(_) => "checksum_set_state",
                    SumStep::IsWrong(_) => "checksum_verify",
                    SumStep::Deposit(_) => "checksum_subtract_all",
                };
                (call, Vec::new())
            }
            Op::Clone(x) => {
                let shown = vec![("session", number(&x[0])), ("field_list", number(&x[1]))];
                ("clone", shown)
            }
            Op::Mirror(session, _) => ("mirror", vec![("session", number(session))]),
            Op::Recirculate(list) => ("recirculate", vec![("field_list", number(list))]),
            Op::Truncate(len) => ("truncate", vec![("bytes", number(len))]),
            Op::MarkToDrop(..) => ("mark_to_drop", Vec::new()),
            Op::Exit => ("exit", Vec::new()),
            Op::Assert(c) => {
                let holds = c.eval(&self.env(args)).to_string();
                ("assert", vec![("holds", holds)])
            }
            Op::Log(x) => {
                let env = &self.env(args);
                let values: Vec<BigInt> = x.1.iter().map(|v| v.eval(env)).collect();
                let text = super::machine::format_message(&x.0, &values);
                ("log_msg", vec![("text", text)])
            }
            _ => return None,
        })
    }

    fn register(
        &self,
        number: u32,
        index: &Node<u64>,
        args: &[u64],
    ) -> Vec<(&'static str, String)> {
        let name = self.info().registers[number as usize].name.clone();
        let index = self.number(index, args).to_string();
        vec![("register", name), ("index", index)]
    }

    fn write(&self, number: u32, index: &Node<u64>, args: &[u64], v: &BigInt) -> Seen {
        let width = self.externs.registers[number as usize].width();
        let low = wrap(v, width);
        let mut shown = self.register(number, index, args);
        let v = Value::from_be_bytes(&low.to_bytes_be());
        shown.push(("value", value(&v, width)));
        ("register_write", shown)
    }
}

/// Returns the target that an extern writes to.
fn result_of(op: &Op) -> Option<&Target> {
    match op {
        Op::Filter(call) => Some(&call.to),
        Op::Math(call) => Some(&call.to),
        Op::ReadRegister { to, .. }
        | Op::ReadDirect { to, .. }
        | Op::ExecuteMeter { to, .. }
        | Op::Random { to, .. }
        | Op::Hash { to, .. }
        | Op::Sum(
            _,
            SumStep::Get(to)
            | SumStep::GetState(to)
            | SumStep::Verify(to, _)
            | SumStep::IsWrong(to),
        ) => Some(to),
        _ => None,
    }
}
