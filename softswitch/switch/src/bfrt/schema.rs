// SPDX-License-Identifier: Apache-2.0
//! The BfRuntime schema: tables, their fields and actions, as a `bf-rt.json` describes them.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::p4rt::error::{P4Error, P4Result};

/// A schema.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    /// The tables, by id.
    pub tables: BTreeMap<u32, Table>,
    /// The digests.
    pub digests: Vec<Digest>,
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// The name.
    pub name: String,
    /// The id.
    pub id: u32,
    /// The kind of the object: `MatchAction_Direct`, `Counter`, ...
    pub kind: String,
    /// Maximum number of entries.
    pub size: u64,
    /// The key's fields.
    pub key: Vec<KeyField>,
    /// The data fields of all actions.
    pub data: Vec<DataField>,
    /// The actions.
    pub actions: Vec<Action>,
    /// The attributes that the table supports.
    pub attributes: Vec<String>,
    /// The operations that the table supports.
    pub operations: Vec<String>,
    /// Ids of the tables to which entries refer.
    pub depends_on: Vec<u32>,
}

/// A field of a key.
#[derive(Debug, Clone)]
pub struct KeyField {
    /// The id.
    pub id: u32,
    /// The name.
    pub name: String,
    /// `Exact`, `LPM`, `Ternary`, `Range`, `Optional` or `ATCAM`.
    pub match_type: String,
    /// The type.
    pub ty: Type,
}

/// A data field.
#[derive(Debug, Clone)]
pub struct DataField {
    /// The id.
    pub id: u32,
    /// The name.
    pub name: String,
    /// The type.
    pub ty: Type,
    /// The field has a list of values.
    pub is_repeated: bool,
    /// The field has one value for each pipe.
    pub is_register: bool,
    /// Writes must contain the field.
    pub is_mandatory: bool,
    /// Writes must not contain the field.
    pub is_read_only: bool,
    /// The value of entries whose data does not contain the field.
    pub default: Option<u64>,
    /// The fields of each element of a container.
    pub container: Vec<DataField>,
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// A number with this many bits.
    Bits(u32),
    /// True or false.
    Bool,
    /// A floating-point number.
    Float,
    /// One of these strings; any string if the list is empty.
    Text(Vec<String>),
    /// Further fields.
    Container,
}

/// An action of a table.
#[derive(Debug, Clone)]
pub struct Action {
    /// The id.
    pub id: u32,
    /// The name.
    pub name: String,
    /// The entries that may have the action.
    pub scope: Scope,
    /// The parameters.
    pub fields: Vec<DataField>,
}

/// The entries that may have an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All.
    All,
    /// Those with a key.
    TableOnly,
    /// The default entry.
    DefaultOnly,
}

/// A digest.
#[derive(Debug, Clone)]
pub struct Digest {
    /// The id.
    pub id: u32,
    /// The name.
    pub name: String,
    /// The fields.
    pub fields: Vec<DataField>,
}

impl Schema {
    /// Parses a schema.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with the fault.
    pub fn parse(text: &[u8]) -> P4Result<Self> {
        let json: Json = serde_json::from_slice(text)
            .map_err(|e| P4Error::invalid(format!("bfruntime_info is not JSON: {e}")))?;
        let mut schema = Self::default();
        schema.add(&json)?;
        Ok(schema)
    }

    /// Adds the tables and digests of a document.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with the fault.
    pub fn add(&mut self, json: &Json) -> P4Result<()> {
        for table in list(&json["tables"]) {
            let table = parse_table(table)?;
            if let Some(other) = self.tables.get(&table.id) {
                let (a, b, id) = (&other.name, &table.name, table.id);
                let message = format!("bfruntime_info: tables {a} and {b} have the same id {id}");
                return Err(P4Error::invalid(message));
            }
            self.tables.insert(table.id, table);
        }
        for digest in list(&json["learn_filters"]) {
            let name = text(digest, "name")?;
            let fields = list(&digest["fields"]).map(|f| parse_data(f, &name));
            self.digests.push(Digest {
                id: id(digest, &name)?,
                fields: fields.collect::<P4Result<Vec<_>>>()?.concat(),
                name,
            });
        }
        Ok(())
    }

    /// Returns a table.
    ///
    /// # Errors
    /// NOT_FOUND if no table has this id.
    pub fn table(&self, id: u32) -> P4Result<&Table> {
        let table = self.tables.get(&id);
        table.ok_or_else(|| P4Error::not_found(format!("Table not found for id {id}")))
    }

    /// Returns the table with this name, which clients may shorten.
    pub fn table_by_name(&self, name: &str) -> Option<&Table> {
        let mut tables = self.tables.values();
        tables.find(|table| is_called(&table.name, name))
    }
}

impl Table {
    /// Returns an action.
    pub fn action(&self, id: u32) -> Option<&Action> {
        self.actions.iter().find(|action| action.id == id)
    }

    /// Returns a data field of an action, or of all actions.
    pub fn field<'a>(&'a self, action: Option<&'a Action>, id: u32) -> Option<&'a DataField> {
        let own = action.into_iter().flat_map(|action| &action.fields);
        own.chain(&self.data).find(|field| field.id == id)
    }

    /// Returns the id of a data field of all actions.
    pub fn field_id(&self, name: &str) -> Option<u32> {
        let field = self.data.iter().find(|field| field.name == name);
        field.map(|field| field.id)
    }
}

/// Returns true if a client may call an object by this name: its whole name, or the last parts of it.
pub fn is_called(name: &str, given: &str) -> bool {
    let rest = name.strip_suffix(given);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn list(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

fn invalid(what: &str, name: &str) -> P4Error {
    P4Error::invalid(format!(
        "bfruntime_info: missing or invalid {what} of {name}"
    ))
}

fn text(json: &Json, member: &str) -> P4Result<String> {
    let text = json[member].as_str();
    text.map(str::to_owned)
        .ok_or_else(|| invalid(member, "an object"))
}

fn id(json: &Json, name: &str) -> P4Result<u32> {
    let id = json["id"].as_u64().and_then(|id| u32::try_from(id).ok());
    id.ok_or_else(|| invalid("id", name))
}

fn texts(json: &Json) -> Vec<String> {
    let texts = list(json).filter_map(Json::as_str);
    texts.map(str::to_owned).collect()
}

fn parse_table(json: &Json) -> P4Result<Table> {
    let name = text(json, "name")?;
    let key = list(&json["key"]).map(|f| {
        Ok(KeyField {
            id: id(f, &name)?,
            name: text(f, "name")?,
            match_type: text(f, "match_type")?,
            ty: parse_type(&f["type"], &name)?,
        })
    });
    let data = list(&json["data"]).map(|f| parse_data(f, &name));
    let actions = list(&json["action_specs"]).map(|a| {
        let fields = list(&a["data"]).map(|f| parse_data(f, &name));
        Ok(Action {
            id: id(a, &name)?,
            name: text(a, "name")?,
            scope: match a["action_scope"].as_str() {
                Some("TableOnly") => Scope::TableOnly,
                Some("DefaultOnly") => Scope::DefaultOnly,
                _ => Scope::All,
            },
            fields: fields.collect::<P4Result<Vec<_>>>()?.concat(),
        })
    });
    let depends_on = list(&json["depends_on"]).filter_map(Json::as_u64);
    Ok(Table {
        id: id(json, &name)?,
        kind: text(json, "table_type")?,
        size: json["size"].as_u64().unwrap_or(0),
        key: key.collect::<P4Result<_>>()?,
        data: data.collect::<P4Result<Vec<_>>>()?.concat(),
        actions: actions.collect::<P4Result<_>>()?,
        attributes: texts(&json["attributes"]),
        operations: texts(&json["supported_operations"]),
        depends_on: depends_on.filter_map(|id| u32::try_from(id).ok()).collect(),
        name,
    })
}

/// Parses a data field, or the alternatives of one.
fn parse_data(json: &Json, table: &str) -> P4Result<Vec<DataField>> {
    let alternatives: Vec<&Json> = match (json.get("oneof"), json.get("singleton")) {
        (Some(fields), _) => list(fields).collect(),
        (None, Some(field)) => vec![field],
        (None, None) => vec![json],
    };
    let is_mandatory = json["mandatory"] == true && json.get("oneof").is_none();
    let fields = alternatives.into_iter().map(|f| {
        let is_register = list(&f["annotations"]).any(|a| a["value"] == "register_data");
        let ty = match f.get("container") {
            Some(_) => Type::Container,
            None => parse_type(&f["type"], table)?,
        };
        let container = list(&f["container"]).map(|inner| parse_data(inner, table));
        Ok(DataField {
            id: id(f, table)?,
            name: text(f, "name")?,
            ty,
            is_repeated: f["repeated"] == true,
            is_register,
            is_mandatory,
            is_read_only: json["read_only"] == true,
            default: f["type"]["default_value"].as_u64(),
            container: container.collect::<P4Result<Vec<_>>>()?.concat(),
        })
    });
    fields.collect()
}

fn parse_type(json: &Json, table: &str) -> P4Result<Type> {
    let width = json["width"].as_u64().and_then(|w| u32::try_from(w).ok());
    Ok(match json["type"].as_str() {
        Some("bytes") => Type::Bits(width.ok_or_else(|| invalid("width", table))?),
        Some("uint64" | "int64") => Type::Bits(64),
        Some("uint32" | "int32") => Type::Bits(32),
        Some("uint16" | "int16") => Type::Bits(16),
        Some("uint8" | "int8") => Type::Bits(8),
        Some("bool") => Type::Bool,
        Some("float") => Type::Float,
        Some("string" | "enum") => Type::Text(texts(&json["choices"])),
        _ => return Err(invalid("type", table)),
    })
}
