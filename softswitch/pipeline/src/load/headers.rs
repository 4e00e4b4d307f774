// SPDX-License-Identifier: Apache-2.0
//! Loads header types, instances, stacks and unions: JSON to a [`Layout`].

use std::collections::{BTreeMap, HashMap, HashSet};

use super::cursor::Cursor;
use super::temporaries::{self, LOCALS};
use crate::error::LoadError;
use crate::info::{HeaderTypeInfo, Info};
use crate::phv::{Field, PADDING, Place, Word};
use crate::program::layout::{Header, HeaderId, Layout, Stack, Union, UnionStack};

/// Maximum depth of a header stack: its fill count is one byte.
const MAX_DEPTH: usize = 255;
/// Maximum header size in bytes.
const MAX_HEADER_BYTES: u32 = 16 * 1024;

/// Indices of the JSON's names and ids in the layout.
pub(crate) struct Names {
    pub(crate) layout: Layout,
    pub(crate) headers: HashMap<String, HeaderId>,
    pub(crate) stacks: HashMap<String, u32>,
    pub(crate) unions: HashMap<String, u32>,
    pub(crate) union_stacks: HashMap<String, u32>,
    /// Member names of each union type, by union index.
    pub(crate) union_members: Vec<Vec<String>>,
}

struct HeaderType {
    /// Name, width (`None`: variable), signed.
    fields: Vec<(String, Option<u32>, bool)>,
    max_length: u32,
}

impl HeaderType {
    fn fixed_bits(&self) -> u32 {
        self.fields.iter().filter_map(|f| f.1).sum()
    }

    fn varbit(&self) -> Option<usize> {
        self.fields.iter().position(|f| f.1.is_none())
    }

    fn max_bytes(&self) -> u32 {
        self.fixed_bits().div_ceil(8).max(self.max_length)
    }
}

/// Name, type name, type, and whether it is metadata.
type Part<'a> = (&'a str, &'a str, &'a HeaderType, bool);

/// Assigns offsets: metadata, its temporary fields, then validity and counts, then headers.
#[derive(Default)]
struct Arena {
    size: u32,
}

impl Arena {
    fn take(&mut self, bytes: u32) -> u32 {
        self.size += bytes;
        self.size - bytes
    }
}

fn header_types(root: &Cursor, info: &mut Info) -> Result<HashMap<String, HeaderType>, LoadError> {
    let mut types = HashMap::new();
    for t in root.get("header_types").items()? {
        let mut fields = Vec::new();
        for f in t.get("fields").items()? {
            let width = match f.at(1).json.as_str() {
                Some("*") => None,
                _ => Some(f.at(1).u32()?),
            };
            let signed = f.at(2).bool_or(false)?;
            fields.push((f.at(0).str()?.to_owned(), width, signed));
        }
        if fields.iter().filter(|f| f.1.is_none()).count() > 1 {
            return Err(t
                .get("fields")
                .error("a header may have at most one variable-length field"));
        }
        let max_length = t.get("max_length");
        let max_length = if max_length.is_null() {
            0
        } else {
            max_length.u32()?
        };
        let bits: u64 = fields.iter().map(|f| u64::from(f.1.unwrap_or(0))).sum();
        if bits > u64::from(MAX_HEADER_BYTES) * 8 || max_length > MAX_HEADER_BYTES {
            return Err(t.error(format!(
                "a header may have at most {MAX_HEADER_BYTES} bytes"
            )));
        }
        let name = t.get("name").str()?.to_owned();
        let widths = fields.iter().map(|f| (f.0.clone(), f.1.unwrap_or(0)));
        info.header_types.push(HeaderTypeInfo {
            name: name.clone(),
            fields: widths.collect(),
        });
        types.insert(name, HeaderType { fields, max_length });
    }
    Ok(types)
}

/// Assigns a metadata field a slot, or whole bytes if it is wide.
fn place_field(arena: &mut Arena, width: u32, signed: bool) -> Field {
    if width <= 64 {
        let bytes = width.div_ceil(8).max(1).next_power_of_two();
        let place = Place::Word(Word::Slot(arena.take(bytes), bytes as u8));
        Field {
            place,
            width,
            signed,
        }
    } else {
        let bytes = width.div_ceil(64) * 8;
        let base = arena.take(bytes);
        Field::packed((base + bytes) * 8 - width, width, signed)
    }
}

/// Assigns the fields of metadata for which `is_wanted` is true their places, by position.
fn place_some(
    arena: &mut Arena,
    t: &HeaderType,
    places: &mut BTreeMap<usize, Field>,
    is_wanted: impl Fn(&str) -> bool,
) {
    for (i, (name, width, signed)) in t.fields.iter().enumerate() {
        if is_wanted(name) {
            places.insert(i, place_field(arena, width.unwrap_or(0), *signed));
        }
    }
}

/// Assigns all metadata its places, temporary fields behind all others. Returns the number of bytes of the others.
fn place_metadata(
    arena: &mut Arena,
    parts: &[Part],
    temporaries: &HashSet<&str>,
) -> (Vec<(u32, Vec<Field>)>, usize) {
    let is_temporary = |header: &str, field: &str| header == LOCALS && temporaries.contains(field);
    let mut places = vec![(0, Vec::new()); parts.len()];
    let mut slots = vec![BTreeMap::new(); parts.len()];
    let in_slots = |&(_, _, t, is_metadata): &Part| is_metadata && t.varbit().is_none();
    for (i, part) in parts.iter().enumerate() {
        let &(name, _, t, is_metadata) = part;
        if in_slots(part) {
            place_some(arena, t, &mut slots[i], |field| !is_temporary(name, field));
        } else if is_metadata {
            places[i] = place_header(arena, t);
        }
    }
    let bytes = arena.size as usize;
    for (i, part) in parts.iter().enumerate().filter(|(_, part)| in_slots(part)) {
        place_some(arena, part.2, &mut slots[i], |field| {
            is_temporary(part.0, field)
        });
        places[i].1 = std::mem::take(&mut slots[i]).into_values().collect();
    }
    (places, bytes)
}

/// Assigns header fields their position in wire format. A field behind a variable-length one begins at a byte boundary.
fn place_header(arena: &mut Arena, t: &HeaderType) -> (u32, Vec<Field>) {
    let max_bytes = t.max_bytes();
    let base = arena.take(max_bytes + 1);
    let fixed_bits = t.fixed_bits();
    let mut bit = base * 8;
    let mut fields = Vec::new();
    for (_, width, signed) in &t.fields {
        match width {
            Some(width) => {
                fields.push(Field::packed(bit, *width, *signed));
                bit += width;
            }
            None => {
                let off = bit.div_ceil(8);
                let max = max_bytes - fixed_bits / 8;
                let len = arena.take(2);
                let place = Place::Varbit { off, len, max };
                fields.push(Field {
                    place,
                    width: 0,
                    signed: false,
                });
                bit = (off + max) * 8;
            }
        }
    }
    (base, fields)
}

/// Builds the layout.
pub(crate) fn load(root: &Cursor, info: &mut Info) -> Result<Names, LoadError> {
    let types = header_types(root, info)?;
    let json_headers = root.get("headers").items()?;
    let mut arena = Arena::default();
    let mut ids = HashMap::new();
    let mut names = HashMap::new();
    let mut parts = Vec::new();
    for (i, h) in json_headers.iter().enumerate() {
        let name = h.get("name").str()?;
        let type_name = h.get("header_type").str()?;
        let t = types.get(type_name).ok_or_else(|| {
            h.get("header_type")
                .error(format!("no header type {type_name}"))
        })?;
        ids.insert(h.get("id").u64()?, i as HeaderId);
        if names.insert(name.to_owned(), i as HeaderId).is_some() {
            return Err(h.get("name").error(format!("duplicate header name {name}")));
        }
        parts.push((name, type_name, t, h.get("metadata").bool_or(false)?));
    }

    // Metadata comes first, so that it can be cleared in one go.
    let temporaries = temporaries::find(root)?;
    let (mut places, metadata_bytes) = place_metadata(&mut arena, &parts, &temporaries);
    let valid = arena.take(parts.len() as u32);
    let (stacks, stack_names) = stacks(root, &mut arena, &ids)?;
    let unions = unions(root, &mut arena, &ids)?;
    let flags_end = arena.size;

    let mut headers = Vec::new();
    for (i, (name, type_name, t, metadata)) in parts.iter().enumerate() {
        let fixed_bits = t.fixed_bits();
        if !metadata && fixed_bits % 8 != 0 {
            return Err(json_headers[i].error(format!(
                "{name} has {fixed_bits} bits: the length must be a multiple of 8"
            )));
        }
        if !metadata {
            places[i] = place_header(&mut arena, t);
        }
        let (base, fields) = std::mem::take(&mut places[i]);
        let in_slots = *metadata && t.varbit().is_none();
        headers.push(Header {
            name: (*name).to_owned(),
            type_name: (*type_name).to_owned(),
            metadata: *metadata,
            base,
            fixed_bytes: fixed_bits.div_ceil(8),
            valid: valid + i as u32,
            fields,
            names: t.fields.iter().map(|f| f.0.clone()).collect(),
            varbit: t.varbit(),
            max_bytes: t.max_bytes(),
            stored_bytes: if in_slots { 0 } else { t.max_bytes() + 1 },
            union: unions.of_header.get(&(i as u32)).copied(),
        });
    }
    Ok(Names {
        layout: Layout {
            bytes: arena.size as usize + PADDING,
            flags: valid as usize..flags_end as usize,
            initially_valid: headers.iter().map(|h| u8::from(h.metadata)).collect(),
            headers,
            stacks,
            unions: unions.unions,
            union_stacks: unions.stacks,
            metadata_bytes,
            keeps_fields: false,
        },
        headers: names,
        stacks: stack_names,
        unions: unions.names,
        union_stacks: unions.stack_names,
        union_members: unions.members,
    })
}

fn lookup(ids: &HashMap<u64, u32>, c: &Cursor, what: &str) -> Result<u32, LoadError> {
    let id = c.u64()?;
    ids.get(&id)
        .copied()
        .ok_or_else(|| c.error(format!("no {what} with id {id}")))
}

fn ids_of(ids: &HashMap<u64, u32>, c: &Cursor, what: &str) -> Result<Vec<u32>, LoadError> {
    let list: Vec<u32> = c
        .items()?
        .iter()
        .map(|c| lookup(ids, c, what))
        .collect::<Result<_, _>>()?;
    if list.is_empty() || list.len() > MAX_DEPTH {
        return Err(c.error(format!("a stack must have 1 to {MAX_DEPTH} elements")));
    }
    Ok(list)
}

type Stacks = (Vec<Stack>, HashMap<String, u32>);

fn stacks(root: &Cursor, arena: &mut Arena, ids: &HashMap<u64, u32>) -> Result<Stacks, LoadError> {
    let (mut stacks, mut names) = (Vec::new(), HashMap::new());
    for s in root.get("header_stacks").items()? {
        let elements = ids_of(ids, &s.get("header_ids"), "header")?;
        names.insert(s.get("name").str()?.to_owned(), stacks.len() as u32);
        stacks.push(Stack {
            elements,
            next: arena.take(1),
        });
    }
    Ok((stacks, names))
}

#[derive(Default)]
struct Unions {
    unions: Vec<Union>,
    names: HashMap<String, u32>,
    stacks: Vec<UnionStack>,
    stack_names: HashMap<String, u32>,
    members: Vec<Vec<String>>,
    of_header: HashMap<HeaderId, u32>,
}

fn unions(root: &Cursor, arena: &mut Arena, ids: &HashMap<u64, u32>) -> Result<Unions, LoadError> {
    let mut types: HashMap<&str, Vec<String>> = HashMap::new();
    for t in root.get("header_union_types").items()? {
        let members = t.get("headers").items()?;
        let members = members.iter().map(|m| m.at(0).str().map(str::to_owned));
        types.insert(t.get("name").str()?, members.collect::<Result<_, _>>()?);
    }
    let mut u = Unions::default();
    let mut union_ids = HashMap::new();
    for json in root.get("header_unions").items()? {
        let index = u.unions.len() as u32;
        let type_name = json.get("union_type").str()?;
        let names = types.get(type_name).cloned().ok_or_else(|| {
            json.get("union_type")
                .error(format!("no header union type {type_name}"))
        })?;
        let members = ids_of(ids, &json.get("header_ids"), "header")?;
        if members.len() != names.len() {
            return Err(json
                .get("header_ids")
                .error(format!("{type_name} has {} members", names.len())));
        }
        u.of_header.extend(members.iter().map(|&m| (m, index)));
        union_ids.insert(json.get("id").u64()?, index);
        u.names.insert(json.get("name").str()?.to_owned(), index);
        u.unions.push(Union { members });
        u.members.push(names);
    }
    for json in root.get("header_union_stacks").items()? {
        let elements = ids_of(&union_ids, &json.get("header_union_ids"), "header union")?;
        u.stack_names
            .insert(json.get("name").str()?.to_owned(), u.stacks.len() as u32);
        u.stacks.push(UnionStack {
            elements,
            next: arena.take(1),
        });
    }
    Ok(u)
}
