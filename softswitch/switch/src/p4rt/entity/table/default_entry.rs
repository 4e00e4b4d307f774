// SPDX-License-Identifier: Apache-2.0
//! Writes of default entries (specification, section "Default Entry").

use softswitch_pipeline::{EntryAction, Pipeline, TableId};

use super::direct::{self, Direct};
use super::{check_default, note};
use crate::p4rt::entity::call::{self, Use};
use crate::p4rt::entity::{Context, Op};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::notes::{EntryNote, Notes};
use crate::p4rt::schema::{Schema, Table};
use crate::proto::p4::v1::{TableEntry, table_action, update::Type};

pub fn write(schema: &Schema, table: &Table, operation: Type, entry: &TableEntry) -> P4Result<Op> {
    let name = &table.name;
    let invalid = |reason: &str| {
        Err(P4Error::invalid(format!(
            "table {name}: the default entry {reason}"
        )))
    };
    if operation != Type::Modify {
        return invalid("can only be modified");
    }
    check_default(table, entry)?;
    if table.const_default || table.profile.is_some() {
        return Err(P4Error::permission_denied(format!(
            "table {name}: the default action is constant"
        )));
    }
    let call =
        match entry.action.as_ref().map(|a| &a.r#type) {
            None => None,
            Some(Some(table_action::Type::Action(a))) => Some(EntryAction::Direct(
                call::decode_call(schema, table, a, Use::Default)?,
            )),
            Some(_) => return invalid("needs an action, not a member or group"),
        };
    let target = table.target;
    let direct = Direct::decode(table, entry)?;
    // A reset removes the controller's earlier data; data sent with the reset is kept.
    let (note, direct) = match call {
        Some(_) => (note(entry), direct),
        None => (EntryNote::default(), direct.of_reset(table)),
    };
    Ok(Box::new(move |cx| {
        let before = cx.before(|p, notes| Before::look(p, notes, target));
        cx.pipeline.set_default_action(target, call)?;
        direct.set(cx.pipeline, target, None)?;
        cx.notes.set_default(target, note);
        if let Some(Ok(before)) = before {
            cx.undo(move |cx| before.restore(cx, target));
        }
        Ok(())
    }))
}

/// The previous state of a default entry.
struct Before {
    action: Option<EntryAction>,
    direct: direct::Before,
    note: EntryNote,
}

impl Before {
    fn look(p: &Pipeline, notes: &Notes, table: TableId) -> P4Result<Self> {
        Ok(Self {
            action: p.default_action(table)?,
            direct: direct::Before::look(p, table, None)?,
            note: notes.default(table),
        })
    }

    fn restore(self, cx: &mut Context<'_>, table: TableId) -> P4Result<()> {
        cx.pipeline.set_default_action(table, self.action)?;
        self.direct.restore(cx.pipeline, table, None)?;
        cx.notes.set_default(table, self.note);
        Ok(())
    }
}
