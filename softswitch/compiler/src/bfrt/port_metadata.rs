// SPDX-License-Identifier: Apache-2.0
//! The metadata of ports that ingress parsers of TNA receive in front of packets.

use serde_json::{Value, json};

use super::externs::scalar_type;
use super::json::{bytes, field, key, single, table};
use super::{Schema, ids};
use crate::ir::PortMetadata;

/// Number of ports: 72 for each of four pipes.
const PORTS: u64 = 288;

/// The width of a port's number.
const PORT_BITS: u64 = 9;

impl Schema<'_> {
    /// Appends the tables of port metadata.
    pub fn port_metadata(&self, tables: &mut Vec<Value>) {
        for metadata in &self.ir.port_metadata {
            let name = match metadata.parser.as_str() {
                "" => "$PORT_METADATA".to_owned(),
                parser => format!("{parser}.$PORT_METADATA"),
            };
            let id = self.ids.port_metadata(self.number(&name));
            let mut t = table(&name, id, "PortMetadata", PORTS, vec![]);
            let port = format!("{}.ingress_port", metadata.intrinsic);
            let (id, of) = (ids::PORT_METADATA_PORT, bytes(PORT_BITS));
            t["key"] = json!([key(id, &port, true, "Exact", of)]);
            t["data"] = fields(metadata).into();
            tables.push(t);
        }
    }
}

/// Returns the fields of port metadata, or one field for all bits.
fn fields(metadata: &PortMetadata) -> Vec<Value> {
    if metadata.fields.is_empty() {
        let (id, of) = (ids::PORT_METADATA_DEFAULT, bytes(metadata.bits.into()));
        return vec![single(field(id, "$DEFAULT_FIELD", of), false)];
    }
    let fields = metadata.fields.iter().zip(1..);
    fields
        .map(|((name, ty), id)| single(field(id, name, scalar_type(ty)), true))
        .collect()
}
