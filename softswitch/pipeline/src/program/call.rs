// SPDX-License-Identifier: Apache-2.0
//! Action calls, with their arguments in the form that actions read.

use smallvec::SmallVec;

use crate::entry::ActionCall;
use crate::error::StateError;
use crate::info::{ActionId, Info};
use crate::phv::mask64;
use crate::value::Value;

/// An action with its arguments, as 64-bit limbs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) action: u32,
    pub(crate) args: SmallVec<[u64; 3]>,
}

/// A reference to a [`Call`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallRef<'a> {
    pub(crate) action: u32,
    pub(crate) args: &'a [u64],
}

impl<'a> From<&'a Call> for CallRef<'a> {
    fn from(call: &'a Call) -> Self {
        Self {
            action: call.action,
            args: &call.args,
        }
    }
}

/// Returns the arguments as 64-bit limbs, least significant first; `None` if one is wider than its parameter.
pub(crate) fn limbs(
    widths: impl IntoIterator<Item = u32>,
    args: &[Value],
) -> Option<SmallVec<[u64; 3]>> {
    let mut out = SmallVec::new();
    for (width, arg) in widths.into_iter().zip(args) {
        if arg.bits() > width {
            return None;
        }
        let count = width.div_ceil(64).max(1) as usize;
        out.extend(arg.limbs().chain(std::iter::repeat(0)).take(count));
    }
    Some(out)
}

/// Checks a call of one of the actions that `table` allows, and packs its arguments.
pub(crate) fn pack(
    info: &Info,
    table: &str,
    allowed: impl Fn(ActionId) -> bool,
    call: &ActionCall,
) -> Result<Call, StateError> {
    let bad = |reason| StateError::BadAction {
        table: table.to_owned(),
        reason,
    };
    let Some(action) = info.actions.get(call.action.index()) else {
        return Err(bad(format!("no action with index {}", call.action.0)));
    };
    if !allowed(call.action) {
        return Err(bad(format!(
            "action {} is not in the table's action list",
            action.name
        )));
    }
    if action.params.len() != call.args.len() {
        let (want, have) = (action.params.len(), call.args.len());
        return Err(bad(format!(
            "action {} takes {want} arguments, but {have} were given",
            action.name
        )));
    }
    for ((name, width), arg) in action.params.iter().zip(&call.args) {
        if arg.bits() > *width {
            return Err(StateError::TooWide {
                what: format!("parameter {name} of action {}", action.name),
                value: arg.clone(),
                width: *width,
            });
        }
    }
    let args = limbs(action.params.iter().map(|p| p.1), &call.args).expect("widths were checked");
    Ok(Call {
        action: call.action.0,
        args,
    })
}

/// The reverse of [`pack`].
pub(crate) fn unpack<'a>(info: &Info, call: impl Into<CallRef<'a>>) -> ActionCall {
    let call = call.into();
    let mut rest = call.args;
    let params = &info.actions[call.action as usize].params;
    let args = params.iter().map(|(_, width)| {
        let (limbs, tail) = rest.split_at(width.div_ceil(64).max(1) as usize);
        rest = tail;
        if let [limb] = limbs {
            return Value::from(limb & mask64(*width));
        }
        let bytes: Vec<u8> = limbs.iter().rev().flat_map(|l| l.to_be_bytes()).collect();
        Value::from_be_bytes(&bytes)
    });
    ActionCall {
        action: ActionId(call.action),
        args: args.collect(),
    }
}
