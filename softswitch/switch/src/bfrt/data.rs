// SPDX-License-Identifier: Apache-2.0
//! The data of entries: values of fields, by id.

use std::collections::{BTreeMap, BTreeSet};

use softswitch_pipeline::Value;

use super::schema::{Action, DataField, Table, Type};
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::data_field::container_array::Container;
use crate::proto::bfrt::data_field::{
    BoolArray, ContainerArray, IntArray, StrArray, Value as Wire,
};
use crate::proto::bfrt::{DataField as Message, TableData};

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    /// A number.
    Number(Value),
    /// A truth value.
    Bool(bool),
    /// A floating-point number.
    Float(f32),
    /// A string.
    Text(String),
    /// A list of numbers.
    Numbers(Vec<u32>),
    /// A list of truth values.
    Bools(Vec<bool>),
    /// A list of strings.
    Texts(Vec<String>),
    /// A list of containers: the values of their fields, by id.
    Containers(Vec<BTreeMap<u32, FieldValue>>),
}

impl From<u64> for FieldValue {
    fn from(number: u64) -> Self {
        Self::Number(Value::from(number))
    }
}

impl From<u32> for FieldValue {
    fn from(number: u32) -> Self {
        Self::Number(Value::from(number))
    }
}

impl From<bool> for FieldValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for FieldValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The data of an entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// The action; 0 for none.
    pub action: u32,
    /// The values, by field id.
    pub values: BTreeMap<u32, FieldValue>,
}

impl Data {
    /// Decodes data.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if an action or field is unknown, or a value does not fit its field.
    pub fn decode(table: &Table, data: Option<&TableData>) -> P4Result<Self> {
        let Some(data) = data else {
            return Ok(Self::default());
        };
        let action = find_action(table, data.action_id)?;
        let mut values = BTreeMap::new();
        for message in &data.fields {
            let field = find_field(table, action, message.field_id)?;
            if field.is_read_only {
                return Err(invalid(table, field, "is read-only"));
            }
            let value = decode(table, field, message.value.as_ref())?;
            let earlier = values.insert(field.id, value);
            if earlier.is_some() && !field.is_register {
                return Err(invalid(table, field, "is given twice"));
            }
        }
        let action = data.action_id;
        Ok(Self { action, values })
    }

    /// Sets a field by its name; does nothing if the table does not have it.
    pub fn set(&mut self, table: &Table, name: &str, value: impl Into<FieldValue>) {
        if let Some(id) = table.field_id(name) {
            self.values.insert(id, value.into());
        }
    }

    /// Returns the value of a field by its name.
    pub fn get(&self, table: &Table, name: &str) -> Option<&FieldValue> {
        self.values.get(&table.field_id(name)?)
    }

    /// Returns the number in a field by its name.
    pub fn number(&self, table: &Table, name: &str) -> Option<u64> {
        match self.get(table, name)? {
            FieldValue::Number(value) => value.to_u64(),
            _ => None,
        }
    }

    /// Returns the number of 32 bits in a field by its name.
    pub fn u32(&self, table: &Table, name: &str) -> Option<u32> {
        self.number(table, name).and_then(|n| u32::try_from(n).ok())
    }

    /// Returns the truth value in a field by its name.
    pub fn bool(&self, table: &Table, name: &str) -> Option<bool> {
        match self.get(table, name)? {
            FieldValue::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the list of numbers in a field by its name.
    pub fn numbers(&self, table: &Table, name: &str) -> Option<&[u32]> {
        match self.get(table, name)? {
            FieldValue::Numbers(values) => Some(values),
            _ => None,
        }
    }

    /// Returns the list of truth values in a field by its name.
    pub fn bools(&self, table: &Table, name: &str) -> Option<&[bool]> {
        match self.get(table, name)? {
            FieldValue::Bools(values) => Some(values),
            _ => None,
        }
    }

    /// Encodes data. `others` are the same entry in other pipes, from which further values of registers come.
    pub fn encode(&self, table: &Table, filter: &Filter, others: &[Data]) -> TableData {
        let action = table.action(self.action);
        let mut fields = Vec::new();
        for (id, value) in &self.values {
            let Some(field) = table.field(action, *id) else {
                continue;
            };
            if !filter.takes(field.id) {
                continue;
            }
            fields.push(encode(field, value));
            if field.is_register {
                let others = others.iter().filter_map(|data| data.values.get(id));
                fields.extend(others.map(|value| encode(field, value)));
            }
        }
        TableData {
            action_id: self.action,
            fields,
        }
    }
}

/// The fields that a client reads.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// The action that the entry must have; 0 for any.
    pub action: u32,
    /// The fields; all if empty.
    fields: BTreeSet<u32>,
}

impl Filter {
    /// Decodes the data of a read.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if an action or field is unknown.
    pub fn decode(table: &Table, data: Option<&TableData>) -> P4Result<Self> {
        let Some(data) = data else {
            return Ok(Self::default());
        };
        let action = find_action(table, data.action_id)?;
        let fields = data.fields.iter();
        let fields = fields.map(|f| Ok(find_field(table, action, f.field_id)?.id));
        Ok(Self {
            action: data.action_id,
            fields: fields.collect::<P4Result<_>>()?,
        })
    }

    fn takes(&self, field: u32) -> bool {
        self.fields.is_empty() || self.fields.contains(&field)
    }
}

fn find_action(table: &Table, id: u32) -> P4Result<Option<&Action>> {
    match (id, table.action(id)) {
        (0, _) => Ok(None),
        (_, Some(action)) => Ok(Some(action)),
        (_, None) => Err(P4Error::invalid(format!(
            "table {}: unknown action id {id}",
            table.name
        ))),
    }
}

fn find_field<'a>(
    table: &'a Table,
    action: Option<&'a Action>,
    id: u32,
) -> P4Result<&'a DataField> {
    let field = table.field(action, id);
    field.ok_or_else(|| {
        P4Error::invalid(format!("table {}: unknown data field id {id}", table.name))
    })
}

fn invalid(table: &Table, field: &DataField, reason: &str) -> P4Error {
    P4Error::invalid(format!(
        "table {}: data field {} {reason}",
        table.name, field.name
    ))
}

/// Returns a number that fits a width.
///
/// # Errors
/// INVALID_ARGUMENT if it does not.
pub fn number(bytes: &[u8], width: u32, what: impl Fn() -> String) -> P4Result<Value> {
    let value = Value::from_be_bytes(bytes);
    if value.bits() > width {
        let message = format!("{}: value {value} does not fit {width} bits", what());
        return Err(P4Error::invalid(message));
    }
    Ok(value)
}

/// Returns a number in the bytes of its width.
pub fn padded(value: &Value, width: u32) -> Vec<u8> {
    let padded = value.to_padded(width.div_ceil(8) as usize);
    padded.unwrap_or_else(|| value.as_bytes().to_vec())
}

fn decode(table: &Table, field: &DataField, value: Option<&Wire>) -> P4Result<FieldValue> {
    let value = value.ok_or_else(|| invalid(table, field, "does not have a value"))?;
    let is_choice =
        |choices: &[String], text: &String| choices.is_empty() || choices.contains(text);
    Ok(match (&field.ty, value) {
        (Type::Bits(width), Wire::Stream(bytes)) if !field.is_repeated => {
            let what = || format!("table {}, data field {}", table.name, field.name);
            FieldValue::Number(number(bytes, *width, what)?)
        }
        (Type::Bits(width), Wire::IntArrVal(list)) if field.is_repeated => {
            if list.val.iter().any(|n| *width < 32 && n >> width != 0) {
                return Err(invalid(table, field, "has a value that is too large"));
            }
            FieldValue::Numbers(list.val.clone())
        }
        // Clients write lists of bytes as strings.
        (Type::Bits(8), Wire::Stream(bytes)) if field.is_repeated => {
            FieldValue::Numbers(bytes.iter().copied().map(u32::from).collect())
        }
        (Type::Bool, Wire::BoolVal(value)) if !field.is_repeated => FieldValue::Bool(*value),
        // Registers of truth values are byte strings.
        (Type::Bool, Wire::Stream(bytes)) if !field.is_repeated => {
            FieldValue::Bool(bytes.iter().any(|b| *b != 0))
        }
        (Type::Bool, Wire::BoolArrVal(list)) if field.is_repeated => {
            FieldValue::Bools(list.val.clone())
        }
        (Type::Float, Wire::FloatVal(value)) => FieldValue::Float(*value),
        (Type::Text(choices), Wire::StrVal(text)) if !field.is_repeated => {
            let known = choices
                .iter()
                .find(|choice| choice.eq_ignore_ascii_case(text));
            let text = match choices.is_empty() {
                true => text,
                false => known.ok_or_else(|| {
                    let reason = format!("must be one of {choices:?}");
                    invalid(table, field, &reason)
                })?,
            };
            FieldValue::Text(text.clone())
        }
        (Type::Text(choices), Wire::StrArrVal(list)) if field.is_repeated => {
            if !list.val.iter().all(|text| is_choice(choices, text)) {
                return Err(invalid(table, field, &format!("must be of {choices:?}")));
            }
            FieldValue::Texts(list.val.clone())
        }
        (Type::Container, Wire::ContainerArrVal(list)) => {
            let containers = list.container.iter();
            let containers = containers.map(|container| decode_container(table, field, container));
            FieldValue::Containers(containers.collect::<P4Result<_>>()?)
        }
        _ => return Err(invalid(table, field, "has a value of another type")),
    })
}

/// Decodes an element of a list of containers. Fields without a value count as absent.
fn decode_container(
    table: &Table,
    field: &DataField,
    container: &Container,
) -> P4Result<BTreeMap<u32, FieldValue>> {
    let present = container
        .val
        .iter()
        .filter(|message| message.value.is_some());
    let values = present.map(|message| {
        let mut known = field.container.iter();
        let inner = known.find(|inner| inner.id == message.field_id);
        let inner = inner.ok_or_else(|| invalid(table, field, "has an unknown field"))?;
        Ok((inner.id, decode(table, inner, message.value.as_ref())?))
    });
    values.collect()
}

fn encode(field: &DataField, value: &FieldValue) -> Message {
    let value = match value {
        FieldValue::Number(number) => {
            let width = match field.ty {
                Type::Bits(width) => width,
                _ => number.bits(),
            };
            Wire::Stream(padded(number, width))
        }
        FieldValue::Bool(value) => Wire::BoolVal(*value),
        FieldValue::Float(value) => Wire::FloatVal(*value),
        FieldValue::Text(text) => Wire::StrVal(text.clone()),
        FieldValue::Numbers(val) => Wire::IntArrVal(IntArray { val: val.clone() }),
        FieldValue::Bools(val) => Wire::BoolArrVal(BoolArray { val: val.clone() }),
        FieldValue::Texts(val) => Wire::StrArrVal(StrArray { val: val.clone() }),
        FieldValue::Containers(list) => {
            let container = list.iter().map(|values| {
                let known = |id| field.container.iter().find(|inner| inner.id == id);
                let values = values.iter();
                let val = values.filter_map(|(id, value)| Some(encode(known(*id)?, value)));
                Container { val: val.collect() }
            });
            Wire::ContainerArrVal(ContainerArray {
                container: container.collect(),
            })
        }
    };
    Message {
        field_id: field.id,
        value: Some(value),
    }
}
