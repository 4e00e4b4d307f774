// SPDX-License-Identifier: Apache-2.0
//! Digest configurations.

use super::{Op, View, unknown, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::Schema;
use crate::proto::p4::v1::{DigestEntry, Entity, entity::Entity as Kind, update::Type};

pub fn write(schema: &Schema, action: Type, entry: &DigestEntry) -> P4Result<Op> {
    let id = entry.digest_id;
    let digest = schema
        .digests
        .get(id)
        .ok_or_else(|| unknown("digest", id))?;
    let name = digest.name.clone();
    let config = entry.config.unwrap_or_default();
    let negative =
        config.max_timeout_ns < 0 || config.max_list_size < 0 || config.ack_timeout_ns < 0;
    if negative && action != Type::Delete {
        return Err(P4Error::invalid(format!(
            "digest {name}: time-outs and list size must not be negative"
        )));
    }
    Ok(Box::new(move |cx| {
        let digests = &mut cx.notes.digests;
        let before = digests.get(&id).copied();
        match (action, digests.contains_key(&id)) {
            (Type::Insert, true) => {
                return Err(P4Error::already_exists(format!(
                    "digest {name} is already configured"
                )));
            }
            (Type::Modify | Type::Delete, false) => {
                return Err(P4Error::not_found(format!(
                    "digest {name} is not configured"
                )));
            }
            (Type::Delete, true) => drop(digests.remove(&id)),
            _ => drop(digests.insert(id, config)),
        }
        cx.undo(move |cx| {
            match before {
                Some(config) => cx.notes.digests.insert(id, config),
                None => cx.notes.digests.remove(&id),
            };
            Ok(())
        });
        Ok(())
    }))
}

pub fn read(view: View<'_>, request: &DigestEntry, out: &mut Vec<Entity>) -> P4Result<()> {
    let wanted = request.digest_id;
    if wanted != 0 && view.schema.digests.get(wanted).is_none() {
        return Err(unknown("digest", wanted));
    }
    let selected = view.notes.digests.iter();
    let selected = selected.filter(|(id, _)| wanted == 0 || wanted == **id);
    out.extend(selected.map(|(id, config)| {
        wrap(Kind::DigestEntry(DigestEntry {
            digest_id: *id,
            config: Some(*config),
        }))
    }));
    Ok(())
}
