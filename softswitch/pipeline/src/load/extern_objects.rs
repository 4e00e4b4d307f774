// SPDX-License-Identifier: Apache-2.0
//! Loads the extern objects of PSA (PSA 1.2, section 7; names as p4c writes them).

use std::cell::RefCell;
use std::collections::HashMap;

use super::cursor::Cursor;
use super::headers::Names;
use super::{MAX_CELLS, calculation_over, meter_unit_of};
use crate::error::LoadError;
use crate::info::{CounterInfo, Info, MeterInfo};
use crate::program::calculation::Calculation;
use crate::program::hash::Hash;

type Result<T> = std::result::Result<T, LoadError>;

/// One extern object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Object {
    Counter(u32),
    Meter(u32),
    Hash(Hash),
    Sum(u32),
}

/// The extern objects by name.
#[derive(Debug, Default)]
pub(crate) struct ExternObjects {
    pub(crate) by_name: HashMap<String, Object>,
    /// Number of Internet checksums.
    pub(crate) sums: u32,
    /// Number of named calculations.
    named: u32,
    /// The inputs of the calls.
    inputs: RefCell<Vec<Calculation>>,
}

impl ExternObjects {
    /// Loads the objects. `counters` are those that the document also lists as arrays.
    pub(crate) fn load(
        root: &Cursor,
        counters: &HashMap<String, u32>,
        named: usize,
        info: &mut Info,
    ) -> Result<Self> {
        let mut objects = Self {
            named: named as u32,
            ..Self::default()
        };
        for json in root.get("extern_instances").items()? {
            let name = json.get("name").str()?.to_owned();
            let object = match json.get("type").str()? {
                "Counter" => Object::Counter(match counters.get(&name) {
                    Some(&array) => array,
                    None => {
                        let size = cells(&json, "n_counters")?;
                        let name = name.clone();
                        info.counters.push(CounterInfo { name, size });
                        info.counters.len() as u32 - 1
                    }
                }),
                "Meter" => {
                    info.meters.push(MeterInfo {
                        name: name.clone(),
                        size: cells(&json, "n_meters")?,
                        unit: meter_unit_of(&attribute(&json, "type")?)?,
                    });
                    Object::Meter(info.meters.len() as u32 - 1)
                }
                "Hash" => {
                    let algorithm = attribute(&json, "algo")?;
                    let hash = Hash::by_name(algorithm.str()?);
                    Object::Hash(hash.ok_or_else(|| algorithm.error("unknown hash algorithm"))?)
                }
                "InternetChecksum" => {
                    objects.sums += 1;
                    Object::Sum(objects.sums - 1)
                }
                other => {
                    let message = format!(
                        "unknown extern {other}: expected Counter, Meter, Hash or InternetChecksum"
                    );
                    return Err(json.get("type").error(message));
                }
            };
            objects.by_name.insert(name, object);
        }
        Ok(objects)
    }

    /// Returns the inputs of the calls, in the order of their numbers.
    pub(crate) fn into_inputs(self) -> Vec<Calculation> {
        self.inputs.into_inner()
    }

    /// Adds a calculation over a list of fields and headers, and returns its number.
    pub(crate) fn input(&self, names: &Names, hash: Hash, list: &Cursor) -> Result<u32> {
        let mut calculation = calculation_over(hash, &list.get("value"), names)?;
        calculation.pad_in_front();
        let mut inputs = self.inputs.borrow_mut();
        inputs.push(calculation);
        Ok(self.named + inputs.len() as u32 - 1)
    }
}

/// Returns the value of an attribute.
fn attribute<'a>(json: &Cursor<'a>, name: &str) -> Result<Cursor<'a>> {
    for attribute in json.get("attribute_values").items()? {
        if attribute.get("name").str()? == name {
            return Ok(attribute.get("value"));
        }
    }
    Err(json
        .get("attribute_values")
        .error(format!("the attribute {name} is missing")))
}

fn cells(json: &Cursor, name: &str) -> Result<usize> {
    let value = attribute(json, name)?;
    let cells = num_traits::ToPrimitive::to_usize(&value.hex()?);
    cells
        .filter(|&n| n <= MAX_CELLS)
        .ok_or_else(|| value.error(format!("the array is too large: at most {MAX_CELLS} cells")))
}
