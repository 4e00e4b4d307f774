//! Writes of default entries (specification, section "Default Entry").

use softswitch_pipeline::EntryAction;

use super::{check_default, note};
use crate::p4rt::entity::Op;
use crate::p4rt::entity::action::{self, Use};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::notes::EntryNote;
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
    if entry.counter_data.is_some()
        || entry.meter_config.is_some()
        || entry.meter_counter_data.is_some()
    {
        return Err(P4Error::unimplemented(format!(
            "table {name}: direct counters and meters of default entries are not supported"
        )));
    }
    let call = match entry.action.as_ref().map(|a| &a.r#type) {
        None => None,
        Some(Some(table_action::Type::Action(a))) => Some(EntryAction::Direct(
            action::decode_call(schema, table, a, Use::Default)?,
        )),
        Some(_) => return invalid("needs an action, not a member or group"),
    };
    let target = table.target;
    let note = if call.is_some() {
        note(entry)
    } else {
        EntryNote::default()
    };
    Ok(Box::new(move |cx| {
        let before = cx.before(|p, notes| (p.default_action(target), notes.default(target)));
        cx.pipeline.set_default_action(target, call)?;
        cx.notes.set_default(target, note);
        if let Some((Ok(call), note)) = before {
            cx.undo(move |cx| {
                cx.notes.set_default(target, note);
                Ok(cx.pipeline.set_default_action(target, call)?)
            });
        }
        Ok(())
    }))
}
