// SPDX-License-Identifier: Apache-2.0
//! Loads calls of the filters and math units of TNA.

use super::call::Call;
use super::filters::Filter;
use crate::error::LoadError;
use crate::phv::mask64;
use crate::program::math_unit::MathUnit;
use crate::program::op::{FilterCall, MathCall, Op};

type Result<T> = std::result::Result<T, LoadError>;

/// Compiles the call of a filter: this, the index unless it is direct, the value, the result.
pub(super) fn execute(call: &Call, filter: Filter) -> Result<Op> {
    let s = &call.scope;
    let (index, value, to) = match filter.is_direct {
        true => {
            let [_, value, to] = call.arity()?;
            (None, value, to)
        }
        false => {
            let [_, index, value, to] = call.arity()?;
            (Some(s.index(index)?), value, to)
        }
    };
    Ok(Op::Filter(Box::new(FilterCall {
        filter: filter.number,
        output: filter.output,
        index,
        value: s.low64(value)?,
        to: call.target(to)?.0,
    })))
}

/// Compiles the call of a math unit: this, the value, the result.
pub(super) fn calculate(call: &Call, unit: &MathUnit) -> Result<Op> {
    let [_, value, to] = call.arity()?;
    let (to, width) = call.target(to)?;
    Ok(Op::Math(Box::new(MathCall {
        unit: unit.clone(),
        value: call.scope.low64(value)?,
        to,
        max: mask64(width.min(64)),
    })))
}
