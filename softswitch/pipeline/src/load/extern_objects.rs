// SPDX-License-Identifier: Apache-2.0
//! Loads the extern objects of PSA (PSA 1.2, section 7; names as p4c writes them) and of TNA.

use std::cell::RefCell;
use std::collections::HashMap;

use super::attributes::{attribute, cells, to_u64};
use super::cursor::Cursor;
use super::filters::{self, Filter};
use super::headers::Names;
use super::{calculation_over, meter_unit_of};
use crate::error::LoadError;
use crate::info::{CounterInfo, HashInfo, HashKind, Info, MeterInfo};
use crate::phv::mask64;
use crate::program::architecture::Architecture;
use crate::program::calculation::Calculation;
use crate::program::changeable_hash::ChangeableHash;
use crate::program::hash::Hash;
use crate::program::hash::HashParameters;
use crate::program::hash_parameters::{ConfiguredCrc, Polynomial};
use crate::program::math_unit::MathUnit;
use crate::program::op::Target;

type Result<T> = std::result::Result<T, LoadError>;

/// One extern object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Object {
    Counter(u32),
    Meter(u32),
    /// The number of its parameters follows, if the control plane can change it.
    Hash(Hash, Option<u32>),
    Sum(u32),
    Filter(Filter),
    /// Number of the math unit.
    Math(usize),
}

/// The extern objects by name.
#[derive(Debug, Default)]
pub(crate) struct ExternObjects {
    pub(crate) by_name: HashMap<String, Object>,
    /// Number of Internet checksums.
    pub(crate) sums: u32,
    pub(crate) math_units: Vec<MathUnit>,
    /// In TNA, inputs of invalid headers are zeros, instead of being left out.
    is_tna: bool,
    /// Number of named calculations.
    named: u32,
    /// The parameters of the hashes.
    polynomials: Vec<HashParameters>,
    /// The hashes that the control plane can change.
    hashes: Vec<ChangeableHash>,
    /// The parts of the program that calls make.
    made: RefCell<Made>,
}

/// The parts of the program that belong to extern objects and their calls.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// The inputs of the calls.
    pub(crate) inputs: Vec<Calculation>,
    /// The polynomials of hashes.
    pub(crate) polynomials: Vec<HashParameters>,
    /// The hashes that the control plane can change.
    pub(crate) hashes: Vec<ChangeableHash>,
    /// The fields for residual checksums.
    pub(crate) deposits: Vec<Target>,
}

impl ExternObjects {
    /// Loads the objects. `counters` are those that the document also lists as arrays.
    pub(crate) fn load(
        root: &Cursor,
        counters: &HashMap<String, u32>,
        architecture: &Architecture,
        named: usize,
        info: &mut Info,
    ) -> Result<Self> {
        let mut objects = Self {
            is_tna: matches!(architecture, Architecture::Tna(_)),
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
                    let base = objects.hash(&json)?;
                    let parameters = objects.is_tna.then(|| objects.parameters());
                    if let Some(parameters) = parameters {
                        let name = name.clone();
                        info.hashes.push(HashInfo { name });
                        let used = attribute(&json, "used_bits");
                        let used = used.and_then(|bits| to_u64(&bits)).unwrap_or(64);
                        objects.hashes.push(ChangeableHash {
                            base,
                            parameters,
                            used_bits: used as u32,
                        });
                    }
                    Object::Hash(base, parameters)
                }
                "InternetChecksum" | "Checksum" => {
                    objects.sums += 1;
                    Object::Sum(objects.sums - 1)
                }
                kind @ ("Lpf" | "Wred" | "DirectLpf" | "DirectWred") => {
                    Object::Filter(filters::filter(&json, kind, info)?)
                }
                "MathUnit" => {
                    objects.math_units.push(filters::math_unit(&json)?);
                    Object::Math(objects.math_units.len() - 1)
                }
                other => {
                    let message = format!(
                        "unknown extern {other}: expected one of PSA or TNA, such as Counter, Meter or Hash"
                    );
                    return Err(json.get("type").error(message));
                }
            };
            objects.by_name.insert(name, object);
        }
        Ok(objects)
    }

    fn hash(&mut self, json: &Cursor) -> Result<Hash> {
        let algorithm = attribute(json, "algo")?;
        let hash = match algorithm.str()? {
            "custom" if self.is_tna => return self.polynomial(json),
            name if self.is_tna => Hash::by_name_in_tna(name),
            name => Hash::by_name(name),
        };
        hash.ok_or_else(|| algorithm.error("unknown hash algorithm"))
    }

    /// Loads a hash with its own polynomial.
    fn polynomial(&mut self, json: &Cursor) -> Result<Hash> {
        let number = |name: &str| {
            let value = attribute(json, name)?;
            to_u64(&value)
        };
        let (width, is_reversed) = (number("width")?, number("reversed")? != 0);
        if !(1..=64).contains(&width) {
            return Err(attribute(json, "width")?.error("a CRC has 1 to 64 bits"));
        }
        let mask = mask64(width as u32);
        let crc = ConfiguredCrc::new(Polynomial {
            width: width as u32,
            // The coefficient of the highest power is 1 anyway.
            polynomial: number("coeff")? & mask,
            initial: number("init")? & mask,
            final_xor: number("xor")? & mask,
            reflect_data: is_reversed,
            reflect_remainder: is_reversed,
        });
        let number = self.named + self.polynomials.len() as u32;
        self.polynomials.push(HashParameters::Crc(Box::new(crc)));
        Ok(Hash::Configurable(HashKind::Fixed, number))
    }

    /// Adds parameters that are those of the program, and returns their number.
    fn parameters(&mut self) -> u32 {
        self.polynomials.push(HashParameters::Default);
        self.named + self.polynomials.len() as u32 - 1
    }

    /// Returns the parts that belong to the objects and their calls, in the order of their numbers.
    pub(crate) fn into_made(self) -> Made {
        Made {
            polynomials: self.polynomials,
            hashes: self.hashes,
            ..self.made.into_inner()
        }
    }

    /// Adds a field for a residual checksum, and returns its number.
    pub(crate) fn deposit(&self, to: Target) -> u32 {
        let deposits = &mut self.made.borrow_mut().deposits;
        deposits.push(to);
        deposits.len() as u32 - 1
    }

    /// Adds a calculation over a list of fields and headers, and returns its number.
    pub(crate) fn input(
        &self,
        names: &Names,
        (hash, dynamic): (Hash, Option<u32>),
        list: &Cursor,
    ) -> Result<u32> {
        let mut calculation = calculation_over(hash, &list.get("value"), names)?;
        calculation.dynamic = dynamic;
        calculation.pad_in_front();
        calculation.keeps_invalid = self.is_tna;
        Ok(self.add(calculation))
    }

    /// Adds a list of fields and headers that become bytes, and returns its number.
    pub(crate) fn front(&self, names: &Names, list: &Cursor) -> Result<u32> {
        let mut calculation = calculation_over(Hash::Identity, &list.get("value"), names)?;
        calculation.keeps_invalid = true;
        Ok(self.add(calculation))
    }

    fn add(&self, calculation: Calculation) -> u32 {
        let inputs = &mut self.made.borrow_mut().inputs;
        inputs.push(calculation);
        self.named + inputs.len() as u32 - 1
    }
}
