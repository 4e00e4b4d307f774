// SPDX-License-Identifier: Apache-2.0
//! Loads the parser: JSON states to a [`Parser`].

use std::collections::HashMap;

use super::action;
use super::architecture::{BlockKind, BlockNames};
use super::call::Objects;
use super::cursor::Cursor;
use super::expr::{Scope, find};
use super::source::location;
use crate::entry::{EntryKey, MatchField};
use crate::error::LoadError;
use crate::info::{KeyInfo, MatchKind, ValueSetInfo};
use crate::phv::{Place, mask64};
use crate::program::architecture::Architecture;
use crate::program::expr::{Cond, Node};
use crate::program::key::KeyShape;
use crate::program::key_part::KeyPart;
use crate::program::op::Target;
use crate::program::parser::{
    ACCEPT, Case, Destination, ErrorCodes, Parser, ParserOp, ParserState, SelectPart,
};
use crate::program::source::StateSource;
use crate::value::Value;

type Result<T> = std::result::Result<T, LoadError>;

/// Loads the parsers and the source positions of their states, and derives the field widths of value sets from their uses.
pub(crate) fn load(
    root: &Cursor,
    objects: &Objects,
    errors: ErrorCodes,
    sets: &mut [ValueSetInfo],
) -> Result<(Parser, Vec<StateSource>)> {
    let names = BlockNames::of(objects.architecture);
    let mut parser = Parser {
        states: Vec::new(),
        starts: vec![ACCEPT; names.count(BlockKind::Parser)],
        errors,
    };
    let mut sources = Vec::new();
    for json in root.get("parsers").items()? {
        let number = names.position(BlockKind::Parser, &json)?;
        let states = json.get("parse_states").items()?;
        let first = parser.states.len() as u32;
        let mut index = HashMap::new();
        for (i, s) in (first..).zip(&states) {
            index.insert(s.get("name").str()?.to_owned(), i);
        }
        let rejecting = matches!(objects.architecture, Architecture::Tna(_));
        if rejecting {
            index.insert(REJECT.to_owned(), first + states.len() as u32);
        }
        let loader = Loader {
            objects,
            index: &index,
        };
        if json.get("init_state").opt_str()?.is_some() {
            parser.starts[number] = find(&index, &json.get("init_state"), "parser state")?;
        }
        for json in &states {
            let (state, source) = loader.state(json, sets)?;
            parser.states.push(state);
            sources.push(source);
        }
        if rejecting {
            parser.states.push(reject(&parser.errors));
            sources.push(StateSource::default());
        }
    }
    Ok((parser, sources))
}

/// The name of the state that rejects a packet in a program for TNA.
const REJECT: &str = "reject";

/// Returns the state that rejects a packet.
fn reject(errors: &ErrorCodes) -> ParserState {
    ParserState {
        name: REJECT.to_owned(),
        ops: vec![ParserOp::Verify(
            Cond::Const(false),
            Node::Const(errors.no_match),
        )],
        key: Vec::new(),
        words: 0,
        cases: Vec::new(),
        default: ACCEPT,
    }
}

struct Loader<'a> {
    objects: &'a Objects<'a>,
    index: &'a HashMap<String, u32>,
}

impl Loader<'_> {
    fn scope(&self) -> Scope<'_> {
        Scope {
            names: self.objects.names,
            registers: self.objects.registers,
            params: &[],
        }
    }

    fn state(
        &self,
        json: &Cursor,
        sets: &mut [ValueSetInfo],
    ) -> Result<(ParserState, StateSource)> {
        let mut ops = Vec::new();
        let mut steps = Vec::new();
        for json in json.get("parser_ops").items()? {
            let position = location(json.json);
            match (ops.last_mut(), steps.last_mut(), self.op(&json)?) {
                // None of them jumps, so they can run as one step.
                (Some(ParserOp::Run(list)), Some(step), ParserOp::Run(more)) => {
                    list.extend(more);
                    Vec::push(step, position);
                }
                (.., op) => {
                    ops.push(op);
                    steps.push(vec![position]);
                }
            }
        }
        let (key, shape, widths) = self.key(&json.get("transition_key"))?;
        let mut cases = Vec::new();
        let mut default = ACCEPT;
        let (mut transitions, mut default_transition) = (Vec::new(), None);
        for t in json.get("transitions").items()? {
            let next = match t.get("next_state").opt_str()? {
                Some(_) => find(self.index, &t.get("next_state"), "parser state")?,
                None => ACCEPT,
            };
            let kind = t.get("type").opt_str()?.unwrap_or("hexstr");
            if kind == "default" || (kind == "hexstr" && t.get("value").json == "default") {
                (default, default_transition) = (next, location(t.json));
                continue;
            }
            transitions.push(location(t.json));
            match kind {
                "hexstr" => cases.push(hex_case(&t, &shape, &widths, next)?),
                "parse_vset" => {
                    let name = t.get("value").str()?;
                    let set = sets.iter().position(|s| s.name == name);
                    let set =
                        set.ok_or_else(|| t.get("value").error(format!("no value set {name}")))?;
                    if !t.get("mask").is_null() {
                        return Err(t.get("mask").error("masks on value sets are not supported"));
                    }
                    if sets[set].fields.is_empty() {
                        sets[set].fields.clone_from(&widths);
                    } else if sets[set].fields != widths {
                        let message =
                            format!("value set {name} is used with keys of different widths");
                        return Err(t.error(message));
                    }
                    cases.push(Case::ValueSet {
                        set: set as u32,
                        next,
                    });
                }
                other => return Err(t.get("type").error(format!("unknown transition {other}"))),
            }
        }
        transitions.push(default_transition);
        let source = StateSource {
            declaration: location(json.json),
            steps,
            transitions,
        };
        let state = ParserState {
            name: json.get("name").str()?.to_owned(),
            ops,
            key,
            words: shape.words,
            cases,
            default,
        };
        Ok((state, source))
    }

    /// Loads the parts of a `select` key, their arrangement in words, and their widths.
    fn key(&self, json: &Cursor) -> Result<(Vec<SelectPart>, KeyShape, Vec<u32>)> {
        enum Source {
            Field(crate::phv::Field),
            Dyn(crate::program::expr::DynField),
            Lookahead(u32),
        }
        let scope = self.scope();
        let mut sources = Vec::new();
        for k in json.items()? {
            let value = k.get("value");
            sources.push(match k.get("type").str()? {
                "field" => {
                    let f = scope.field(&value)?;
                    (Source::Field(f), f.width)
                }
                "stack_field" | "union_stack_field" => {
                    let (place, shape) = scope.lvalue(&k)?;
                    match place {
                        Ok(f) => (Source::Field(f), f.width),
                        Err(d) => (Source::Dyn(d), shape.width),
                    }
                }
                "lookahead" => {
                    let [offset, width] = value.tuple()?;
                    (Source::Lookahead(offset.u32()?), width.u32()?)
                }
                other => return Err(k.get("type").error(format!("unknown key part {other}"))),
            });
        }
        let widths: Vec<u32> = sources.iter().map(|s| s.1).collect();
        let infos: Vec<KeyInfo> = widths
            .iter()
            .map(|&width| KeyInfo {
                name: "select".to_owned(),
                kind: MatchKind::Ternary,
                width,
            })
            .collect();
        let shape = KeyShape::new("select", &infos);
        let place = |(i, (source, width)): (usize, (Source, u32))| {
            let (word, shift) = shape.slot(i);
            match source {
                Source::Field(f) => SelectPart::Field(KeyPart::new(f, (word, shift), None)),
                Source::Dyn(field) => SelectPart::Dyn { field, word, shift },
                Source::Lookahead(offset) => SelectPart::Lookahead {
                    offset,
                    width,
                    word,
                    shift,
                },
            }
        };
        let parts = sources.into_iter().enumerate().map(place).collect();
        Ok((parts, shape, widths))
    }

    fn op(&self, json: &Cursor) -> Result<ParserOp> {
        let params = json.get("parameters");
        let scope = self.scope();
        Ok(match json.get("op").str()? {
            "extract" => {
                let [h] = params.tuple()?;
                match self.destination(&h)? {
                    Destination::Header(id) => {
                        let header = &self.objects.names.layout.headers[id as usize];
                        if header.varbit.is_some() {
                            return Err(json.error("a variable-length header needs extract_VL"));
                        }
                        if header.metadata {
                            return Err(json.error("metadata cannot be extracted"));
                        }
                        ParserOp::Extract(id)
                    }
                    other => ParserOp::ExtractTo(other, None),
                }
            }
            "extract_VL" => {
                let [h, bits] = params.tuple()?;
                ParserOp::ExtractTo(self.destination(&h)?, Some(scope.index(&bits)?))
            }
            "set" => {
                let [to, from] = params.tuple()?;
                if from.get("type").json != "lookahead" {
                    let wrapped = serde_json::json!({"op": "assign", "parameters": params.json});
                    let op = action::op(self.objects, &[], &Cursor::root(&wrapped), 1);
                    return op
                        .map(|op| ParserOp::Run(vec![op]))
                        .map_err(|e| json.error(e.to_string()));
                }
                let [offset, width] = from.get("value").tuple()?;
                let (place, _) = scope.lvalue(&to)?;
                let to = match place {
                    Ok(f) => match f.place {
                        Place::Word(w) => Target::Word(w, mask64(f.width)),
                        _ => Target::Field(f),
                    },
                    Err(d) => Target::Dyn(Box::new(d)),
                };
                ParserOp::Lookahead {
                    to,
                    offset: offset.u32()?,
                    width: width.u32()?,
                }
            }
            "verify" => {
                let [cond, error] = params.tuple()?;
                let code = match error.json.as_u64() {
                    Some(code) => Node::Const(code),
                    None => scope.low64(&error)?,
                };
                ParserOp::Verify(scope.cond(&cond)?, code)
            }
            "shift" => ParserOp::Advance(Node::Const(params.at(0).u64()? * 8)),
            "advance" => ParserOp::Advance(scope.index(&params.at(0))?),
            "primitive" => ParserOp::Run(vec![action::op(self.objects, &[], &params.at(0), 1)?]),
            other => {
                return Err(json
                    .get("op")
                    .error(format!("unknown parser operation {other}")));
            }
        })
    }

    fn destination(&self, c: &Cursor) -> Result<Destination> {
        let names = self.objects.names;
        let value = c.get("value");
        Ok(match c.get("type").str()? {
            "regular" => Destination::Header(self.scope().header_id(&value)?),
            "stack" => Destination::Stack(find(&names.stacks, &value, "header stack")?),
            "union_stack" => {
                let [stack, member] = value.tuple()?;
                let s = find(&names.union_stacks, &stack, "header union stack")?;
                Destination::UnionStack(s, self.scope().union_member(s, &member)?)
            }
            other => return Err(c.get("type").error(format!("cannot extract to a {other}"))),
        })
    }
}

/// Loads a case. Its value and mask consist of the key's fields, each padded to whole bytes.
fn hex_case(t: &Cursor, shape: &KeyShape, widths: &[u32], next: u32) -> Result<Case> {
    let split = |c: &Cursor| -> Result<Vec<Value>> {
        let total: usize = widths.iter().map(|w| w.div_ceil(8) as usize).sum();
        let bytes = Value::from_be_bytes(&c.hex_bytes()?).to_padded(total);
        let bytes = bytes.ok_or_else(|| c.error(format!("the key has only {total} bytes")))?;
        let mut rest = bytes.as_slice();
        let fields = widths.iter().map(|w| {
            let (field, tail) = rest.split_at(w.div_ceil(8) as usize);
            rest = tail;
            Value::from_be_bytes(field)
        });
        Ok(fields.collect())
    };
    let values = split(&t.get("value"))?;
    let masks = match t.get("mask").is_null() {
        true => widths.iter().map(|&w| Value::ones(w)).collect(),
        false => split(&t.get("mask"))?,
    };
    let and = |a: &Value, b: &Value| {
        let len = a.as_bytes().len().max(b.as_bytes().len());
        let pad = |v: &Value| v.to_padded(len).expect("the longest fits");
        let bytes: Vec<u8> = pad(a).iter().zip(pad(b)).map(|(a, b)| a & b).collect();
        Value::from_be_bytes(&bytes)
    };
    let fields = values.iter().zip(&masks).zip(widths).map(|((v, m), &w)| {
        let mask = and(m, &Value::ones(w));
        MatchField::Ternary {
            value: and(v, &mask),
            mask,
        }
    });
    let priority = i32::from(shape.needs_priority);
    let key = EntryKey {
        fields: fields.collect(),
        priority,
    };
    let c = shape.encode(&key).map_err(|e| t.error(e.to_string()))?;
    Ok(match (c.values.as_slice(), c.masks.as_slice()) {
        (&[value], &[mask]) => Case::Word { value, mask, next },
        _ => Case::Words {
            values: c.values.into_vec(),
            masks: c.masks.into_vec(),
            next,
        },
    })
}
