// SPDX-License-Identifier: Apache-2.0
//! Loads actions: JSON primitives to [`Op`]s.

use std::collections::HashMap;

use super::call::{Call, Objects};
use super::cursor::Cursor;
use super::expr::{Param, Scope, find};
use super::externs;
use crate::error::LoadError;
use crate::program::architecture::Architecture;
use crate::program::op::Op;

type Result<T> = std::result::Result<T, LoadError>;

/// Assigns consecutive limbs to an action's parameters.
pub(crate) fn params(widths: impl IntoIterator<Item = u32>) -> Vec<Param> {
    let mut first = 0;
    let place = |width| {
        let p = Param { first, width };
        first += p.limbs();
        p
    };
    widths.into_iter().map(place).collect()
}

/// Compiles a list of primitives.
pub(crate) fn ops(objects: &Objects, params: &[Param], list: &Cursor) -> Result<Vec<Op>> {
    let primitives = list.items()?;
    let count = primitives.len();
    primitives
        .iter()
        .map(|p| op(objects, params, p, count))
        .collect()
}

/// Compiles one primitive of an action of `count` primitives.
pub(crate) fn op(objects: &Objects, params: &[Param], p: &Cursor, count: usize) -> Result<Op> {
    let scope = Scope {
        names: objects.names,
        registers: objects.registers,
        params,
    };
    let call = Call {
        objects,
        scope,
        json: p,
        args: p.get("parameters").items()?,
        count,
    };
    call.compile()
}

impl Call<'_> {
    fn assign(&self, to: &Cursor, from: &Cursor) -> Result<Op> {
        let (target, width) = self.target(to)?;
        let v = self.scope.value(from, Some(width))?;
        Ok(match width {
            0..=64 => Op::set64(target, v.into64()),
            65..=128 => Op::Set128(target, v.into128()),
            _ => Op::SetBig(target, v.into_big()),
        })
    }

    /// A P4_14 arithmetic primitive: `to = a op b`.
    fn arithmetic(&self, op: &str, to: &Cursor, a: &Cursor, b: &Cursor) -> Result<Op> {
        let expression = serde_json::json!({
            "type": "expression",
            "value": {"op": op, "left": a.json, "right": b.json},
        });
        let (target, width) = self.target(to)?;
        let v = self.scope.value(&Cursor::root(&expression), Some(width));
        let v = v.map_err(|e| self.json.error(e.to_string()))?;
        Ok(match width {
            0..=64 => Op::set64(target, v.into64()),
            65..=128 => Op::Set128(target, v.into128()),
            _ => Op::SetBig(target, v.into_big()),
        })
    }

    fn object(&self, c: &Cursor, map: &HashMap<String, u32>, what: &str) -> Result<u32> {
        find(map, &c.get("value"), what)
    }

    fn stack(&self, c: &Cursor) -> Result<(bool, u32)> {
        let value = c.get("value");
        if c.get("type").str()? == "header_union_stack" {
            Ok((
                true,
                find(
                    &self.objects.names.union_stacks,
                    &value,
                    "header union stack",
                )?,
            ))
        } else {
            Ok((
                false,
                find(&self.objects.names.stacks, &value, "header stack")?,
            ))
        }
    }

    fn shift(&self, towards_end: bool) -> Result<Op> {
        let [stack, count] = self.arity()?;
        let (of_unions, stack) = self.stack(stack)?;
        Ok(Op::ShiftStack {
            of_unions,
            stack,
            count: self.scope.index(count)?,
            towards_end,
        })
    }

    fn drop(&self) -> Result<Op> {
        match self.objects.architecture {
            Architecture::V1Model(s) => Ok(Op::MarkToDrop(s.egress_spec, s.mcast_grp)),
            Architecture::Psa(_) | Architecture::Tna(_) => {
                Err(self.json.error("this primitive belongs to v1model"))
            }
        }
    }

    /// Compiles `mark_to_drop`. Its header may be a copy of the standard metadata, because compilers pass copies.
    fn mark_to_drop(&self) -> Result<Op> {
        let [h] = match self.args.as_slice() {
            [] => return self.drop(),
            _ => self.arity()?,
        };
        let header =
            &self.objects.names.layout.headers[self.scope.header_id(&h.get("value"))? as usize];
        let egress_spec = header.field("egress_spec");
        let egress_spec =
            egress_spec.ok_or_else(|| h.error(format!("{} has no egress_spec", header.name)))?;
        Ok(Op::MarkToDrop(egress_spec, header.field("mcast_grp")))
    }

    fn jump_target(&self, c: &Cursor) -> Result<usize> {
        let to = num_traits::ToPrimitive::to_usize(&c.get("value").hex()?);
        to.filter(|&t| t <= self.count)
            .ok_or_else(|| c.error("the jump target is outside the action"))
    }

    fn compile(&self) -> Result<Op> {
        let name = self.json.get("op").str()?;
        let s = &self.scope;
        let o = self.objects;
        Ok(match name {
            "assign" | "modify_field" => {
                let [to, from] = self.arity()?;
                self.assign(to, from)?
            }
            "assign_VL" => {
                let [to, from] = self.arity()?;
                let (to, _) = s.lvalue(to)?;
                let (from, _) = s.lvalue(from)?;
                match (to, from) {
                    (Ok(to), Ok(from)) => Op::SetVarbit(to, from),
                    _ => {
                        return Err(self
                            .json
                            .error("assign_VL is supported for fields of fixed headers only"));
                    }
                }
            }
            "assign_header" | "copy_header" => {
                let [to, from] = self.arity()?;
                Op::SetHeader(Box::new([s.header(to)?, s.header(from)?]))
            }
            "assign_union" => {
                let [to, from] = self.arity()?;
                Op::SetUnion(Box::new([s.union(to)?, s.union(from)?]))
            }
            "assign_header_stack" | "assign_union_stack" => {
                let [to, from] = self.arity()?;
                let ((of_unions, to), (_, from)) = (self.stack(to)?, self.stack(from)?);
                Op::SetStack {
                    of_unions,
                    to,
                    from,
                }
            }
            "add_header" | "add_header_fast" => {
                let [h] = self.arity()?;
                Op::AddHeader(s.header(h)?)
            }
            "remove_header" => {
                let [h] = self.arity()?;
                Op::RemoveHeader(s.header(h)?)
            }
            "push" => self.shift(true)?,
            "pop" => self.shift(false)?,
            "add_to_field" | "subtract_from_field" => {
                let [f, by] = self.arity()?;
                self.arithmetic(if name == "add_to_field" { "+" } else { "-" }, f, f, by)?
            }
            "add" | "subtract" | "bit_xor" | "bit_or" | "bit_and" | "shift_left"
            | "shift_right" => {
                let op = match name {
                    "add" => "+",
                    "subtract" => "-",
                    "bit_xor" => "^",
                    "bit_or" => "|",
                    "bit_and" => "&",
                    "shift_left" => "<<",
                    _ => ">>",
                };
                let [to, a, b] = self.arity()?;
                self.arithmetic(op, to, a, b)?
            }
            "register_read" => {
                let [to, array, index] = self.arity()?;
                let (register, _) = find(o.registers, &array.get("value"), "register")?;
                Op::ReadRegister {
                    to: self.target(to)?.0,
                    register,
                    index: s.index(index)?,
                }
            }
            "register_write" => {
                let [array, index, v] = self.arity()?;
                let (register, width) = find(o.registers, &array.get("value"), "register")?;
                let value = s.value(v, Some(width))?;
                let index = s.index(index)?;
                if width <= 64 {
                    Op::WriteRegister64 {
                        register,
                        index,
                        value: value.into64(),
                    }
                } else {
                    Op::WriteRegisterBig {
                        register,
                        index,
                        value: value.into_big(),
                    }
                }
            }
            "count" => {
                let [array, index] = self.arity()?;
                let counter = self.object(array, o.counters, "counter")?;
                Op::Count {
                    counter,
                    index: s.index(index)?,
                }
            }
            "execute_meter" => {
                let [array, index, to] = self.arity()?;
                let meter = self.object(array, o.meters, "meter")?;
                Op::ExecuteMeter {
                    meter,
                    index: s.index(index)?,
                    to: self.target(to)?.0,
                    before: None,
                    less: None,
                    codes: o.architecture.color_codes(),
                }
            }
            "generate_digest" => {
                let [_receiver, list] = self.arity()?;
                let id = num_traits::ToPrimitive::to_u64(&list.get("value").hex()?);
                let digest = id.and_then(|id| o.digests.get(&id)).copied();
                Op::Digest(digest.ok_or_else(|| list.error("no learn list with this id"))?)
            }
            "modify_field_rng_uniform" => {
                let [to, low, high] = self.arity()?;
                let (low, high) = (s.low64(low)?, s.low64(high)?);
                Op::Random {
                    to: self.target(to)?.0,
                    bounds: Box::new([low, high]),
                }
            }
            "modify_field_with_hash_based_offset" => {
                let [to, base, calculation, size] = self.arity()?;
                let calculation = self.object(calculation, o.calculations, "calculation")?;
                let range = Some(Box::new([s.low64(base)?, s.low64(size)?]));
                Op::Hash {
                    to: self.target(to)?.0,
                    calculation,
                    range,
                }
            }
            "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress" => {
                let [session, list] = self.arity()?;
                Op::Clone(Box::new([s.low64(session)?, s.low64(list)?]))
            }
            "resubmit" => {
                let [list] = self.arity()?;
                Op::Resubmit(s.low64(list)?)
            }
            "recirculate" => {
                let [list] = self.arity()?;
                Op::Recirculate(s.low64(list)?)
            }
            "truncate" => {
                let [len] = self.arity()?;
                Op::Truncate(s.index(len)?)
            }
            "mark_to_drop" => self.mark_to_drop()?,
            "drop" => self.drop()?,
            "exit" => Op::Exit,
            "assert" | "assume" => {
                let [c] = self.arity()?;
                Op::Assert(s.cond(c)?)
            }
            "log_msg" => {
                let [format, values] = self.arity()?;
                let values = values.get("value");
                // p4c writes an empty object if there are no values.
                let values = match values.json.as_object() {
                    Some(none) if none.is_empty() => Vec::new(),
                    _ => values.items()?,
                };
                let values = values.iter().map(|v| Ok(s.value(v, None)?.into_big()));
                let format = format.get("value").str()?.to_owned();
                Op::Log(Box::new((format, values.collect::<Result<_>>()?)))
            }
            "_jump" => {
                let [to] = self.arity()?;
                Op::Jump(self.jump_target(to)?)
            }
            "_jump_if_zero" => {
                let [c, to] = self.arity()?;
                Op::JumpUnless(s.cond(c)?, self.jump_target(to)?)
            }
            "no_op" => Op::Nop,
            other => externs::method(self, other)?.ok_or_else(|| {
                let message = format!("unknown primitive {other}");
                self.json.get("op").error(message)
            })?,
        })
    }
}
