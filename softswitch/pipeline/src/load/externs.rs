// SPDX-License-Identifier: Apache-2.0
//! Loads the calls of the methods of the extern objects of PSA and TNA.

use num_traits::Zero;

use super::call::Call;
use super::cursor::Cursor;
use super::expr::find;
use super::extern_objects::Object;
use super::filter_calls;
use crate::error::LoadError;
use crate::program::hash::Hash;
use crate::program::op::{CountCorrection, Op, SumStep};

type Result<T> = std::result::Result<T, LoadError>;

/// Compiles the call of a method, `_TYPE_METHOD`; `None` for other primitives.
pub(crate) fn method(call: &Call, name: &str) -> Result<Option<Op>> {
    let externs = call.objects.externs;
    let object = || {
        let this = call.args.first();
        let this = this.ok_or_else(|| call.json.get("parameters").error("expected an extern"))?;
        find(&externs.by_name, &this.get("value"), "extern")
    };
    let mistyped = || {
        call.json
            .get("parameters")
            .error("the method does not belong to this extern")
    };
    let s = &call.scope;
    Ok(Some(match name {
        "_Counter_count" => {
            let [_, index] = call.arity()?;
            let Object::Counter(counter) = object()? else {
                return Err(mistyped());
            };
            let index = s.index(index)?;
            Op::Count { counter, index }
        }
        "_Counter_correct" => {
            let Object::Counter(counter) = object()? else {
                return Err(mistyped());
            };
            let [_, index, less @ ..] = call.args.as_slice() else {
                return Err(mistyped());
            };
            let less = less.first().map(|bytes| s.low64(bytes)).transpose()?;
            Op::CorrectCount(Box::new(CountCorrection {
                cell: Some((counter, s.index(index)?)),
                less,
            }))
        }
        "_DirectCounter_correct" => {
            let less = call.args.first().map(|bytes| s.low64(bytes)).transpose()?;
            Op::CorrectCount(Box::new(CountCorrection { cell: None, less }))
        }
        "_Meter_execute" | "_Meter_execute_adjusted" => {
            let [_, index, to, rest @ ..] = call.args.as_slice() else {
                return Err(mistyped());
            };
            // The adjustment precedes the colour.
            let (less, rest) = match (name, rest) {
                ("_Meter_execute_adjusted", [less, rest @ ..]) => (Some(s.low64(less)?), rest),
                _ => (None, rest),
            };
            let before = rest.first().map(|before| s.low64(before)).transpose()?;
            let Object::Meter(meter) = object()? else {
                return Err(mistyped());
            };
            Op::ExecuteMeter {
                meter,
                index: s.index(index)?,
                to: call.target(to)?.0,
                before,
                less: less.map(Box::new),
                codes: call.objects.architecture.color_codes(),
            }
        }
        "_Hash_get_hash" | "_Hash_get_hash_mod" => {
            let Object::Hash(hash, dynamic) = object()? else {
                return Err(mistyped());
            };
            let (to, list, range) = if name == "_Hash_get_hash" {
                let [_, to, list] = call.arity()?;
                (to, list, None)
            } else {
                let [_, to, base, list, size] = call.arity()?;
                let range = Box::new([s.low64(base)?, s.low64(size)?]);
                (to, list, Some(range))
            };
            Op::Hash {
                to: call.target(to)?.0,
                calculation: externs.input(call.objects.names, (hash, dynamic), list)?,
                range,
            }
        }
        "_Mirror_emit" => {
            let [session, list] = call.arity()?;
            Op::Mirror(s.low64(session)?, externs.front(call.objects.names, list)?)
        }
        "_Resubmit_emit" => {
            let [list] = call.arity()?;
            Op::ResubmitWith(externs.front(call.objects.names, list)?)
        }
        "_Pktgen_emit" => {
            let [list] = call.arity()?;
            Op::Generate(externs.front(call.objects.names, list)?)
        }
        "_DirectRegister_read" => {
            let [to, register] = call.arity()?;
            let registers = call.objects.direct_registers;
            Op::ReadDirect {
                to: call.target(to)?.0,
                register: find(registers, &register.get("value"), "direct register")?.0,
            }
        }
        "_DirectRegister_write" => {
            let [register, value] = call.arity()?;
            let registers = call.objects.direct_registers;
            let (register, width) = find(registers, &register.get("value"), "direct register")?;
            Op::WriteDirect {
                register,
                value: s.value(value, Some(width))?.into_big(),
            }
        }
        "_Checksum_update" => {
            let [_, to, list, zeros_as_ones] = call.arity()?;
            let hash = match zeros_as_ones.get("value").hex()?.is_zero() {
                true => Hash::Csum16,
                false => Hash::Csum16AsOnes,
            };
            Op::Hash {
                to: call.target(to)?.0,
                calculation: externs.input(call.objects.names, (hash, None), list)?,
                range: None,
            }
        }
        "_Lpf_execute" | "_Wred_execute" | "_DirectLpf_execute" | "_DirectWred_execute" => {
            let Object::Filter(filter) = object()? else {
                return Err(mistyped());
            };
            filter_calls::execute(call, filter)?
        }
        "_MathUnit_execute" => {
            let Object::Math(unit) = object()? else {
                return Err(mistyped());
            };
            filter_calls::calculate(call, &externs.math_units[unit])?
        }
        _ => {
            let of_psa = name.strip_prefix("_InternetChecksum_");
            let Some(method) = of_psa.or_else(|| name.strip_prefix("_Checksum_")) else {
                return Ok(None);
            };
            let Object::Sum(number) = object()? else {
                return Err(mistyped());
            };
            Op::Sum(number, sum_step(call, method, of_psa.is_some())?)
        }
    }))
}

/// Compiles a method of a checksum of PSA or TNA.
fn sum_step(call: &Call, method: &str, is_psa: bool) -> Result<SumStep> {
    let input = |list: &Cursor| {
        let objects = call.objects;
        objects
            .externs
            .input(objects.names, (Hash::Csum16, None), list)
    };
    if method == "clear" {
        let [_] = call.arity()?;
        return Ok(SumStep::Clear);
    }
    if method == "get_verify" {
        let [_, to, field] = call.arity()?;
        let (to, field) = (call.target(to)?.0, call.scope.low64(field)?);
        return Ok(SumStep::Verify(to, field));
    }
    let [_, value] = call.arity()?;
    Ok(match method {
        "add" => SumStep::Add(input(value)?),
        "subtract" => SumStep::Subtract(input(value)?),
        "get" if is_psa => SumStep::Get(call.target(value)?.0),
        // The residual of TNA is the sum itself.
        "get" => SumStep::GetState(call.target(value)?.0),
        "verify" => SumStep::IsWrong(call.target(value)?.0),
        "subtract_all_and_deposit" => {
            SumStep::Deposit(call.objects.externs.deposit(call.target(value)?.0))
        }
        "get_state" => SumStep::GetState(call.target(value)?.0),
        "set_state" => SumStep::SetState(call.scope.low64(value)?),
        other => {
            let message = format!("unknown method {other} of a checksum");
            return Err(call.json.get("op").error(message));
        }
    })
}
