// SPDX-License-Identifier: Apache-2.0
//! Ports: their settings, of which only loopback has an effect, their state and their counters.
//!
//! A connector has four channels, so that port 5 is `2/1`.

use softswitch_pipeline::Value;

use super::{Access, Query, Row, Update, attributes, loopback, stored};
use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::key::Key;
use crate::bfrt::link::Fixed;
use crate::bfrt::schema::Table;
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::update::Type;
use crate::proto::bfrt::{PortStatusChgNotification, TableEntry};

/// Channels of a connector.
const CHANNELS: u32 = 4;

fn connector(port: u32) -> (u32, u32) {
    (port / CHANNELS + 1, port % CHANNELS)
}

fn port_at(connector: u64, channel: u64) -> Option<u32> {
    let first = u32::try_from(connector).ok()?.checked_sub(1)?;
    let channel = u32::try_from(channel).ok().filter(|c| *c < CHANNELS)?;
    first.checked_mul(CHANNELS)?.checked_add(channel)
}

fn is_enabled(table: &Table, data: &Data) -> bool {
    data.bool(table, "$PORT_ENABLE") == Some(true)
}

/// Changes the settings of ports, and notifies clients of ports that are enabled or disabled.
pub fn write(access: &mut Access<'_, '_>, update: &Update<'_>) -> P4Result<()> {
    let table = update.table;
    if update.operation == Type::ModifyInc {
        return Err(update.unsupported());
    }
    let key = update.key.as_ref();
    let key = key.map(|key| stored::numbers(table, key)).transpose()?;
    let enabled = |access: &Access<'_, '_>| {
        let data = access.state.entry(table.id, key.as_ref()?)?;
        Some(is_enabled(table, data))
    };
    let before = enabled(access);
    // As in Tofino's drivers, the deletion of a port that does not exist succeeds.
    if update.operation == Type::Delete && key.is_some() && before.is_none() {
        return Ok(());
    }
    let looped = loopback::ports(access, table);
    stored::write(access.state, update)?;
    loopback::update(access, table, &looped);
    let after = enabled(access);
    if let (Some(before), Some(after), Some(key)) = (before, after, &key)
        && before != after
        && attributes::notifies_ports(access.state, table.id)
    {
        access.port_changes.push(PortStatusChgNotification {
            table_entry: Some(TableEntry {
                table_id: table.id,
                value: Some(crate::proto::bfrt::table_entry::Value::Key(
                    Key::exact(key.iter().copied()).encode(table),
                )),
                ..Default::default()
            }),
            port_up: after,
        });
    }
    Ok(())
}

pub fn read(access: &mut Access<'_, '_>, query: &Query<'_>, kind: Fixed) -> P4Result<Vec<Row>> {
    match kind {
        Fixed::Ports => settings(access, query),
        Fixed::PortCounters => counters(access, query),
        Fixed::PortsByConnector => {
            let find = |key: &Key| {
                let table = query.table;
                Ok(port_at(key.number(table, 0)?, key.number(table, 1)?))
            };
            by_key(query, find)
        }
        Fixed::PortsByIndex => by_key(query, |key| key.u32(query.table, 0).map(Some)),
        _ => by_key(query, |key| {
            let name = key.text(query.table, 0)?;
            let parts = name.split_once('/');
            let numbers = parts.and_then(|(c, l)| Some((c.parse().ok()?, l.parse().ok()?)));
            Ok(numbers.and_then(|(connector, channel)| port_at(connector, channel)))
        }),
    }
}

/// Reads the settings and the states of ports.
fn settings(access: &mut Access<'_, '_>, query: &Query<'_>) -> P4Result<Vec<Row>> {
    let mut rows = stored::read(access.state, query)?;
    let attached = access.ports.control.list();
    let table = query.table;
    for row in &mut rows {
        let Some(key) = &row.key else { continue };
        let port = key.u32(table, 0)?;
        let is_up = attached.iter().any(|p| p.number == port && p.up);
        let is_up = is_up && is_enabled(table, &row.data);
        let (connector, channel) = connector(port);
        let data = &mut row.data;
        data.set(table, "$PORT_UP", is_up);
        data.set(table, "$IS_VALID", true);
        data.set(table, "$IS_INTERNAL", false);
        data.set(table, "$CONN_ID", connector);
        data.set(table, "$CHNL_ID", channel);
        data.set(
            table,
            "$PORT_NAME",
            format!("{connector}/{channel}").as_str(),
        );
    }
    Ok(rows)
}

/// Reads the counters of ports.
fn counters(access: &mut Access<'_, '_>, query: &Query<'_>) -> P4Result<Vec<Row>> {
    let wanted = query.key.as_ref();
    let wanted = wanted.map(|key| key.u32(query.table, 0)).transpose()?;
    let views = access.ports.views.iter();
    let views = views.filter(|view| wanted.is_none_or(|port| port == view.number));
    let rows: Vec<Row> = views
        .map(|view| {
            let (table, c) = (query.table, &view.counters);
            let mut data = Data::default();
            for (name, counter) in [
                ("$FramesReceivedOK", &c.rx_packets),
                ("$FramesReceivedAll", &c.rx_packets),
                ("$OctetsReceivedinGoodFrames", &c.rx_bytes),
                ("$OctetsReceived", &c.rx_bytes),
                ("$FramesTransmittedOK", &c.tx_packets),
                ("$FramesTransmittedAll", &c.tx_packets),
                ("$OctetsTransmittedwithouterror", &c.tx_bytes),
                ("$OctetsTransmittedTotal", &c.tx_bytes),
            ] {
                data.set(table, name, counter.get());
            }
            stored::complete(table, &mut data);
            Row {
                key: Some(Key::exact([view.number.into()])),
                data,
            }
        })
        .collect();
    if rows.is_empty() && wanted.is_some() {
        let message = format!("table {}: the port does not exist", query.table.name);
        return Err(P4Error::not_found(message));
    }
    Ok(rows)
}

/// Reads the port with a key.
fn by_key(query: &Query<'_>, find: impl Fn(&Key) -> P4Result<Option<u32>>) -> P4Result<Vec<Row>> {
    let Some(key) = &query.key else {
        return Ok(vec![]);
    };
    let port = find(key)?.ok_or_else(|| {
        P4Error::not_found(format!(
            "table {}: the port does not exist",
            query.table.name
        ))
    })?;
    let mut data = Data::default();
    data.set(
        query.table,
        "$DEV_PORT",
        FieldValue::Number(Value::from(port)),
    );
    Ok(vec![Row {
        key: Some(key.clone()),
        data,
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connectors_have_four_channels() {
        assert_eq!(connector(5), (2, 1));
        assert_eq!(port_at(2, 1), Some(5));
        assert_eq!(port_at(0, 1), None);
        assert_eq!(port_at(1, 4), None);
        assert_eq!(port_at(u64::MAX, 0), None);
    }
}
