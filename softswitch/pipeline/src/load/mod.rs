// SPDX-License-Identifier: Apache-2.0
//! Loads BMv2 JSON into a [`Compiled`] program.

mod action;
pub(crate) mod architecture;
mod attributes;
mod call;
mod control;
mod cursor;
pub(crate) mod document;
mod entries;
mod expr;
mod extern_objects;
mod externs;
mod filter_calls;
mod filters;
mod gress;
mod headers;
mod mentions;
mod parser;
mod range;
mod registers;
mod source;
mod temporaries;
mod tna;
mod zero;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::error::LoadError;
use crate::info::{
    ActionInfo, CalculationInfo, CounterInfo, DigestInfo, HashKind, Info, MeterInfo, MeterUnit,
    ValueSetInfo,
};
use crate::phv::Field;
use crate::program::architecture::Architecture;
use crate::program::calculation::{Calculation, Input};
use crate::program::hash::{Hash, HashParameters};
use crate::program::locks;
use crate::program::parser::ErrorCodes;
use crate::program::{Action, Checksum, Compiled, Deparser};
use architecture::{BlockKind, BlockNames};
use call::Objects;
use cursor::Cursor;
use expr::{Param, Scope, find};
use extern_objects::ExternObjects;
use headers::Names;

type Result<T> = std::result::Result<T, LoadError>;

/// The highest version of the BMv2 JSON format that this crate loads, major and minor; it loads all minor versions.
pub const FORMAT_VERSION: (u64, u64) = (2, 24);
/// Maximum number of cells of a counter, meter or register array.
const MAX_CELLS: usize = 1 << 28;

/// Compiles the text of a document.
pub(crate) fn program(text: &str) -> Result<Compiled> {
    let compile = || compile(&document::parse(text)?);
    document::on_deep_stack(compile).unwrap_or_else(|e| {
        Err(LoadError {
            path: ".".to_owned(),
            message: format!("cannot start a thread: {e}"),
        })
    })
}

/// Compiles a whole document.
fn compile(document: &Json) -> Result<Compiled> {
    let root = Cursor::root(document);
    if !document.is_object() {
        return Err(root.error("expected an object: use the JSON that p4c-bm2-ss writes"));
    }
    let version = root.get("__meta__").get("version");
    if !version.is_null() && version.at(0).u64()? != FORMAT_VERSION.0 {
        return Err(version.error(format!(
            "unsupported format version: {}.x is required",
            FORMAT_VERSION.0
        )));
    }
    let mut info = Info::default();
    let mut names = headers::load(&root, &mut info)?;
    let architecture = architecture::load(&root, &names)?;
    names.layout.keeps_fields = matches!(architecture, Architecture::Tna(_));
    let errors = errors(&root, &mut info)?;
    let counters = counters(&root, &mut info)?;
    let meters = meters(&root, &mut info)?;
    let (registers, direct_registers) = registers::load(&root, &mut info)?;
    let (digests, digest_ids) = digests(&root, &names, &mut info)?;
    let (mut calculations, calculation_names) = calculations(&root, &names, &mut info)?;
    for s in root.get("parse_vsets").items()? {
        let width = s.get("compressed_bitwidth").u32()?;
        let name = s.get("name").str()?.to_owned();
        info.value_sets.push(ValueSetInfo {
            name,
            width,
            fields: Vec::new(),
        });
    }
    let externs = ExternObjects::load(
        &root,
        &counters,
        &architecture,
        calculations.len(),
        &mut info,
    )?;
    let objects = Objects {
        architecture: &architecture,
        names: &names,
        registers: &registers,
        direct_registers: &direct_registers,
        counters: &counters,
        meters: &meters,
        calculations: &calculation_names,
        digests: &digest_ids,
        externs: &externs,
    };
    let (parser, states) = parser::load(&root, &objects, errors, &mut info.value_sets)?;
    let (mut actions, action_ids, params) = actions(&root, &objects, &mut info)?;
    let mut control = control::load(&root, &objects, &action_ids, &params, &mut info)?;
    for (table, info) in control.tables.iter_mut().zip(&info.tables) {
        let mut own = info.actions.iter().map(|(_, id)| &actions[id.index()]);
        // These actions must know the entry.
        table.has_direct_state |= own.any(|action| {
            action
                .ops
                .iter()
                .any(crate::program::op::Op::corrects_entry)
        });
    }
    registers::bind(&root, &mut info)?;
    filters::bind(&root, &mut info)?;
    let parts = locks::Parts {
        info: &info,
        nodes: &control.nodes,
        tables: &control.tables,
        controls: &control.firsts,
    };
    let locks = locks::plan(parts, &mut actions);
    let checksums = checksums(&root, &objects)?;
    let deparsers = deparsers(&root, &objects)?;
    let field_lists = field_lists(&root, &names)?;
    let zero_at_ingress = zero::at_ingress(&root, &names, &architecture)?;
    let sums = externs.sums;
    let mut hash_parameters = vec![HashParameters::Default; calculations.len()];
    let made = externs.into_made();
    calculations.extend(made.inputs);
    hash_parameters.extend(made.polynomials);
    Ok(Compiled {
        info: Arc::new(info),
        architecture,
        parser,
        loop_heads: control.loop_heads(),
        nodes: control.nodes,
        controls: control.firsts,
        tables: control.tables,
        selectors: control.selectors,
        actions,
        calculations,
        hash_parameters,
        hashes: made.hashes,
        sums,
        deposits: made.deposits,
        checksums,
        deparsers,
        field_lists,
        digests,
        locks,
        zero_at_ingress,
        has_register_expressions: expr::reads_registers(document),
        source: source::load(document, states),
        layout: names.layout,
    })
}

fn scope<'a>(o: &'a Objects, params: &'a [Param]) -> Scope<'a> {
    Scope {
        names: o.names,
        registers: o.registers,
        params,
    }
}

fn name_scope<'a>(names: &'a Names, registers: &'a HashMap<String, (u32, u32)>) -> Scope<'a> {
    Scope {
        names,
        registers,
        params: &[],
    }
}

fn errors(root: &Cursor, info: &mut Info) -> Result<ErrorCodes> {
    for e in root.get("errors").items()? {
        info.errors
            .push((e.at(0).str()?.to_owned(), e.at(1).u32()?.into()));
    }
    // Errors of the core library that are not in the JSON get the next free codes, as in BMv2.
    let mut next = info.errors.iter().map(|e| e.1 + 1).max().unwrap_or(0);
    let mut code = |name: &str| {
        let known = info.errors.iter().find(|e| e.0 == name).map(|e| e.1);
        known.unwrap_or_else(|| {
            info.errors.push((name.to_owned(), next));
            next += 1;
            next - 1
        })
    };
    Ok(ErrorCodes {
        no_error: code("NoError"),
        packet_too_short: code("PacketTooShort"),
        stack_out_of_bounds: code("StackOutOfBounds"),
        header_too_short: code("HeaderTooShort"),
        parser_timeout: code("ParserTimeout"),
        invalid_argument: code("ParserInvalidArgument"),
        no_match: code("NoMatch"),
    })
}

fn cells(c: &Cursor) -> Result<usize> {
    let size = c.get("size").usize()?;
    if size > MAX_CELLS {
        return Err(c
            .get("size")
            .error(format!("the array is too large: at most {MAX_CELLS} cells")));
    }
    Ok(size)
}

fn counters(root: &Cursor, info: &mut Info) -> Result<HashMap<String, u32>> {
    let mut names = HashMap::new();
    for c in root.get("counter_arrays").items()? {
        if c.get("is_direct").bool_or(false)? {
            continue;
        }
        let name = c.get("name").str()?.to_owned();
        names.insert(name.clone(), info.counters.len() as u32);
        info.counters.push(CounterInfo {
            name,
            size: cells(&c)?,
        });
    }
    Ok(names)
}

fn meter_unit(c: &Cursor) -> Result<MeterUnit> {
    meter_unit_of(&c.get("type"))
}

fn meter_unit_of(name: &Cursor) -> Result<MeterUnit> {
    match name.str()? {
        "packets" => Ok(MeterUnit::Packets),
        "bytes" => Ok(MeterUnit::Bytes),
        other => Err(name.error(format!("expected packets or bytes, found {other}"))),
    }
}

fn meters(root: &Cursor, info: &mut Info) -> Result<HashMap<String, u32>> {
    let mut names = HashMap::new();
    for m in root.get("meter_arrays").items()? {
        if m.get("is_direct").bool_or(false)? {
            continue;
        }
        let name = m.get("name").str()?.to_owned();
        names.insert(name.clone(), info.meters.len() as u32);
        info.meters.push(MeterInfo {
            name,
            size: cells(&m)?,
            unit: meter_unit(&m)?,
        });
    }
    Ok(names)
}

type Digests = (Vec<Vec<Field>>, HashMap<u64, u32>);

fn digests(root: &Cursor, names: &Names, info: &mut Info) -> Result<Digests> {
    let (mut lists, mut ids) = (Vec::new(), HashMap::new());
    let none = HashMap::new();
    let scope = name_scope(names, &none);
    for l in root.get("learn_lists").items()? {
        let elements = l.get("elements").items()?;
        let fields: Vec<Field> = elements
            .iter()
            .map(|e| scope.field(&e.get("value")))
            .collect::<Result<_>>()?;
        let id = l.get("id").u32()?;
        ids.insert(u64::from(id), lists.len() as u32);
        info.digests.push(DigestInfo {
            name: l.get("name").str()?.to_owned(),
            id,
            fields: fields.iter().map(|f| f.width).collect(),
        });
        lists.push(fields);
    }
    Ok((lists, ids))
}

/// Loads the inputs of a calculation or a selector.
fn calculation(c: &Cursor, names: &Names) -> Result<Calculation> {
    let algo = c.get("algo");
    let hash = algo.str()?;
    let hash =
        Hash::by_name(hash).ok_or_else(|| algo.error(format!("unknown hash algorithm {hash}")))?;
    calculation_over(hash, &c.get("input"), names)
}

/// Loads a list of inputs.
fn calculation_over(hash: Hash, inputs: &Cursor, names: &Names) -> Result<Calculation> {
    let none = HashMap::new();
    let scope = name_scope(names, &none);
    let mut calculation = Calculation {
        hash,
        dynamic: None,
        inputs: Vec::new(),
        payload: false,
        keeps_invalid: false,
        summable: false,
    };
    // p4c does not put a single field or header into an array.
    let inputs = match inputs.json {
        Json::Object(_) => vec![inputs.clone()],
        _ => inputs.items()?,
    };
    for i in inputs {
        let value = i.get("value");
        match i.get("type").str()? {
            "field" => calculation.push_field(scope.header_id(&value.at(0))?, scope.field(&value)?),
            "header" => {
                let h = scope.header_id(&value)?;
                for f in &names.layout.headers[h as usize].fields {
                    calculation.push_field(h, *f);
                }
            }
            "hexstr" => {
                let bits = i.get("bitwidth").usize()?;
                let bytes = crate::value::Value::from_be_bytes(&value.hex_bytes()?)
                    .to_padded(bits.div_ceil(8));
                let bytes =
                    bytes.ok_or_else(|| value.error(format!("does not fit {bits} bits")))?;
                calculation.inputs.push(Input::Const(bytes, bits));
            }
            "payload" => calculation.payload = true,
            other => return Err(i.get("type").error(format!("unknown input {other}"))),
        }
    }
    calculation.summable = calculation.is_summable();
    Ok(calculation)
}

fn calculations(
    root: &Cursor,
    names: &Names,
    info: &mut Info,
) -> Result<(Vec<Calculation>, HashMap<String, u32>)> {
    let (mut list, mut index) = (Vec::new(), HashMap::new());
    for c in root.get("calculations").items()? {
        let (name, algorithm) = (c.get("name").str()?.to_owned(), c.get("algo").str()?);
        let number = list.len() as u32;
        index.insert(name.clone(), number);
        info.calculations.push(CalculationInfo {
            name,
            kind: HashKind::by_name(algorithm),
        });
        let mut calculation = calculation(&c, names)?;
        calculation.hash = calculation.hash.of_calculation(algorithm, number);
        list.push(calculation);
    }
    Ok((list, index))
}

type Actions = (Vec<Action>, HashMap<u64, u32>, Vec<Vec<Param>>);

fn actions(root: &Cursor, objects: &Objects, info: &mut Info) -> Result<Actions> {
    let (mut list, mut ids, mut all_params) = (Vec::new(), HashMap::new(), Vec::new());
    for a in root.get("actions").items()? {
        let mut declared = Vec::new();
        for p in a.get("runtime_data").items()? {
            declared.push((p.get("name").str()?.to_owned(), p.get("bitwidth").u32()?));
        }
        let params = action::params(declared.iter().map(|p| p.1));
        let ops = action::ops(objects, &params, &a.get("primitives"))?;
        let id = a.get("id").u64()?;
        if ids.insert(id, list.len() as u32).is_some() {
            return Err(a.get("id").error("duplicate action id"));
        }
        info.actions.push(ActionInfo {
            name: a.get("name").str()?.to_owned(),
            params: declared,
        });
        all_params.push(params);
        list.push(Action { ops, locks: 0 });
    }
    Ok((list, ids, all_params))
}

fn checksums(root: &Cursor, objects: &Objects) -> Result<Vec<Checksum>> {
    let scope = scope(objects, &[]);
    let mut list = Vec::new();
    for c in root.get("checksums").items()? {
        if c.get("type").opt_str()?.is_some_and(|t| t != "generic") {
            return Err(c.get("type").error("expected generic"));
        }
        let condition = c.get("if_cond");
        list.push(Checksum {
            header: scope.header_id(&c.get("target").at(0))?,
            field: scope.field(&c.get("target"))?,
            calculation: find(objects.calculations, &c.get("calculation"), "calculation")?,
            condition: if condition.is_null() {
                None
            } else {
                Some(scope.cond(&condition)?)
            },
            verify: c.get("verify").bool_or(true)?,
            update: c.get("update").bool_or(true)?,
        });
    }
    Ok(list)
}

fn deparsers(root: &Cursor, objects: &Objects) -> Result<Vec<Deparser>> {
    let names = BlockNames::of(objects.architecture);
    let scope = scope(objects, &[]);
    let mut deparsers = vec![Deparser::default(); names.count(BlockKind::Deparser)];
    for d in root.get("deparsers").items()? {
        let order = d.get("order").items()?;
        let headers = order.iter().map(|h| scope.header_id(h));
        deparsers[names.position(BlockKind::Deparser, &d)?] = Deparser {
            ops: action::ops(objects, &[], &d.get("primitives"))?,
            headers: headers.collect::<Result<_>>()?,
        };
    }
    Ok(deparsers)
}

fn field_lists(root: &Cursor, names: &Names) -> Result<HashMap<u32, Vec<Field>>> {
    let mut lists = HashMap::new();
    for l in root.get("field_lists").items()? {
        lists.insert(l.get("id").u32()?, field_list(&l, names)?);
    }
    Ok(lists)
}

fn field_list(list: &Cursor, names: &Names) -> Result<Vec<Field>> {
    let none = HashMap::new();
    let scope = name_scope(names, &none);
    let mut fields = Vec::new();
    for e in list.get("elements").items()? {
        // Constants need not be preserved.
        if e.get("type").str()? == "field" {
            fields.push(scope.field(&e.get("value"))?);
        }
    }
    Ok(fields)
}
