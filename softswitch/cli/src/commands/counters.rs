// SPDX-License-Identifier: Apache-2.0
//! Commands for counters.

use serde_json::json;

use super::entries::all;
use crate::error::{Error, Result};
use crate::output::Answer;
use crate::proto::p4::v1::{
    CounterData, CounterEntry, DirectCounterEntry, Index, entity::Entity, update::Type as Update,
};
use crate::schema::{Kind, name};
use crate::session::Session;
use crate::value;

/// A counter, and the table to which it belongs if it is direct.
#[derive(Clone, Copy)]
enum Counter {
    Indexed(u32),
    Direct { table: u32 },
}

fn find(session: &Session, counter: &str) -> Result<(String, Counter)> {
    let id = session.schema.id(Kind::Counter, counter)?;
    if let Some(counter) = session.schema.direct_counter(id) {
        let table = counter.direct_table_id;
        return Ok((name(&counter.preamble).into(), Counter::Direct { table }));
    }
    let full = session.schema.counter(id).map_or("", |c| name(&c.preamble));
    Ok((full.into(), Counter::Indexed(id)))
}

/// Returns the cell of a counter, with data to write.
fn cell(
    session: &mut Session,
    counter: Counter,
    index: &str,
    data: Option<CounterData>,
) -> Result<Entity> {
    Ok(match counter {
        Counter::Indexed(counter_id) => Entity::CounterEntry(CounterEntry {
            counter_id,
            index: Some(Index {
                index: value::number(index, "index")?,
            }),
            data,
        }),
        Counter::Direct { table } => {
            let (_, key) = session.key_in(table, index)?;
            Entity::DirectCounterEntry(DirectCounterEntry {
                table_entry: Some(key),
                data,
            })
        }
    })
}

pub fn read(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [counter, index] = args else {
        return Err(Error::Usage);
    };
    let (full, counter) = find(session, counter)?;
    let cell = cell(session, counter, index, None)?;
    let data = match session.client.read(cell)?.into_iter().next() {
        Some(Entity::CounterEntry(entry)) => entry.data,
        Some(Entity::DirectCounterEntry(entry)) => entry.data,
        _ => None,
    };
    let missing = || Error::new(format!("{full} has no cell {index}: use a lower index"));
    let CounterData {
        byte_count,
        packet_count,
    } = data.ok_or_else(missing)?;
    Ok(Answer::new(
        format!("{full}[{index}]= ({byte_count} bytes, {packet_count} packets)"),
        json!({"counter": full, "index": index, "bytes": byte_count, "packets": packet_count}),
    ))
}

pub fn write(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [counter, index, packets, bytes] = args else {
        return Err(Error::Usage);
    };
    let (full, counter) = find(session, counter)?;
    let data = CounterData {
        packet_count: value::number(packets, "number of packets")?,
        byte_count: value::number(bytes, "number of bytes")?,
    };
    let cell = cell(session, counter, index, Some(data))?;
    session.client.write(Update::Modify, cell)?;
    Ok(Answer::text(format!("{full}[{index}] has been updated")))
}

pub fn reset(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [counter] = args else {
        return Err(Error::Usage);
    };
    let (_, counter) = find(session, counter)?;
    let cells = match counter {
        Counter::Indexed(counter_id) => Entity::CounterEntry(CounterEntry {
            counter_id,
            ..Default::default()
        }),
        Counter::Direct { table } => Entity::DirectCounterEntry(DirectCounterEntry {
            table_entry: Some(all(table)),
            data: None,
        }),
    };
    let zero = Some(CounterData::default());
    let cells = session
        .client
        .read(cells)?
        .into_iter()
        .filter_map(|cell| match cell {
            Entity::CounterEntry(entry) => Some(Entity::CounterEntry(CounterEntry {
                data: zero,
                ..entry
            })),
            Entity::DirectCounterEntry(entry) => {
                Some(Entity::DirectCounterEntry(DirectCounterEntry {
                    data: zero,
                    ..entry
                }))
            }
            _ => None,
        });
    let cells = cells.collect();
    session.client.write_all(Update::Modify, cells)?;
    Ok(Answer::default())
}
