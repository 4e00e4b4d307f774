// SPDX-License-Identifier: Apache-2.0
//! The control-plane methods of [`Pipeline`](crate::Pipeline).

mod arrays;
mod direct;
mod meters;
mod profiles;
mod tables;

use smallvec::SmallVec;

pub use meters::MeterState;
pub use tables::{IdleEntry, LookupKey};

use crate::entry::ActionCall;
use crate::error::StateError;
use crate::info::{ActionId, Info};
use crate::phv::mask64;
use crate::table::{Call, CallRef};
use crate::value::Value;

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
        let bytes = arg.to_padded(count * 8)?;
        out.extend(
            bytes
                .rchunks(8)
                .map(|c| u64::from_be_bytes(c.try_into().expect("eight bytes"))),
        );
    }
    Some(out)
}

/// Checks a call of one of the actions that `table` allows, and packs its arguments.
fn pack(
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

fn no_such(kind: &'static str, index: u32) -> StateError {
    StateError::NoSuchObject {
        kind,
        id: format!("index {index}"),
    }
}
