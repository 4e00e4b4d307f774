// SPDX-License-Identifier: Apache-2.0
//! Messages of calls of Thrift functions, with arguments of their types.

use arbitrary::{Result, Unstructured};
use softswitch_pipeline::{ActionId, Info, MatchKind, TableInfo};
use softswitch_thrift::interface::{
    Argument, CounterValue, Crc16Config, Crc32Config, EntryOptions, Function, MatchExact, MatchLpm,
    MatchParam, MatchRange, MatchTernary, MatchValid, MeterRate, MirroringSession, functions,
    match_kind,
};
use softswitch_thrift::wire::{Binary, Field, write_record};
use thrift::protocol::{TBinaryOutputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol};

use crate::programs::{FEATURES_CONFIG, FEATURES_INFO};

/// Maximum number of calls in one input.
pub const MAX_CALLS: usize = 64;

/// One of this number of values is arbitrary instead of valid.
const ARBITRARY: u8 = 8;

/// Returns the messages of a sequence of calls, decoded from arbitrary bytes.
pub fn messages(data: &[u8]) -> Vec<u8> {
    let all: Vec<_> = functions().collect();
    let mut input = Unstructured::new(data);
    let mut messages = Vec::new();
    for _ in 0..MAX_CALLS {
        if input.is_empty() {
            break;
        }
        let Ok(function) = input.choose(&all) else {
            break;
        };
        messages.extend(message(function, &mut input));
    }
    messages
}

/// Returns the message of a call with arguments from `input`.
///
/// # Panics
/// If the function has an argument of an unknown type.
pub fn message(function: &Function, input: &mut Unstructured<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut output = TBinaryOutputProtocol::new(&mut bytes, true);
    let mut arguments = Arguments {
        input,
        info: &FEATURES_INFO,
        table: None,
        action: None,
    };
    let call = TMessageIdentifier::new(function.name, TMessageType::Call, 0);
    output
        .write_message_begin(&call)
        .and_then(|()| {
            write_record(&mut output, |output| {
                let mut fields = function.arguments.iter();
                fields.try_for_each(|argument| arguments.write(argument, output))
            })
        })
        .expect("memory accepts all bytes");
    bytes
}

/// The arguments of one call. Later ones depend on the table and the action that earlier ones name.
struct Arguments<'a, 'b> {
    input: &'a mut Unstructured<'b>,
    info: &'static Info,
    table: Option<&'static TableInfo>,
    action: Option<ActionId>,
}

impl Arguments<'_, '_> {
    fn write(
        &mut self,
        argument: &Argument,
        output: &mut dyn TOutputProtocol,
    ) -> thrift::Result<()> {
        // Without further input, the values are the first ones of their types.
        macro_rules! write {
            ($value:expr) => {
                $value.unwrap_or_default().write_field(argument.id, output)
            };
        }
        match argument.kind.replace(' ', "").as_str() {
            "bool" => write!(self.input.arbitrary::<bool>()),
            "i16" => write!(self.number().map(|n| n as i16)),
            "i32" => write!(self.number().map(|n| n as i32)),
            "i64" => write!(self.number()),
            "String" => write!(self.text(argument.name)),
            "Binary" => write!(self.bytes(16)),
            "Vec<Binary>" => write!(self.data()),
            "Vec<i32>" => write!(self.list(|s| s.number().map(|n| n as i32))),
            "Vec<MatchParam>" => write!(self.key()),
            "Vec<MeterRate>" => write!(self.list(Self::rate)),
            "EntryOptions" => write!(self.options()),
            "CounterValue" => write!(self.counter()),
            "Crc16Config" => write!(self.crc16()),
            "Crc32Config" => write!(self.crc32()),
            "MirroringSession" => write!(self.session()),
            other => panic!(
                "unknown type {other} of {}: add it here, so that it is fuzzed",
                argument.name
            ),
        }
    }

    /// Returns true if the next value is arbitrary instead of valid.
    fn is_arbitrary(&mut self) -> Result<bool> {
        self.input.ratio(1, ARBITRARY)
    }

    fn number(&mut self) -> Result<i64> {
        match self.is_arbitrary()? {
            true => self.input.arbitrary(),
            false => self.input.int_in_range(-1..=8),
        }
    }

    fn list<T>(&mut self, mut element: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let len = self.input.int_in_range(0..=3)?;
        (0..len).map(|_| element(self)).collect()
    }

    /// Returns a name or another text.
    fn text(&mut self, argument: &str) -> Result<String> {
        if self.is_arbitrary()? {
            return self.input.arbitrary();
        }
        let info = self.info;
        let names: Vec<&str> = match argument {
            "table" => {
                let table = self.input.choose(&info.tables)?;
                self.table = Some(table);
                return Ok(table.name.clone());
            }
            "action" => {
                let table = self.table.map(|table| &table.actions);
                let actions = table.unwrap_or(&info.tables[0].actions);
                let (name, id) = self.input.choose(actions)?;
                self.action = Some(*id);
                return Ok(name.clone());
            }
            "profile" => info.profiles.iter().map(|o| &*o.name).collect(),
            "counter" => info.counters.iter().map(|o| &*o.name).collect(),
            "meter" => info.meters.iter().map(|o| &*o.name).collect(),
            "register" => info.registers.iter().map(|o| &*o.name).collect(),
            "set" => info.value_sets.iter().map(|o| &*o.name).collect(),
            "port_map" | "lag_map" => vec!["", "1", "10", "110", "x"],
            "config" => vec![std::str::from_utf8(&FEATURES_CONFIG.p4_device_config).unwrap_or("")],
            _ => vec!["", "learn_t"],
        };
        self.input.choose(&names).map(|name| (*name).to_owned())
    }

    /// Returns bytes for a field of this width in bits.
    fn bytes(&mut self, width: u32) -> Result<Binary> {
        if self.is_arbitrary()? {
            return self.input.arbitrary().map(Binary);
        }
        let mut bytes = vec![0; width.div_ceil(8) as usize];
        if let Some(last) = bytes.last_mut() {
            *last = self.input.int_in_range(0..=3)?;
        }
        Ok(Binary(bytes))
    }

    /// Returns the parameters of the action.
    fn data(&mut self) -> Result<Vec<Binary>> {
        let Some(action) = self.action else {
            return self.list(|s| s.bytes(8));
        };
        let params = self.info.actions[action.index()].params.iter();
        params.map(|(_, width)| self.bytes(*width)).collect()
    }

    fn key(&mut self) -> Result<Vec<MatchParam>> {
        let Some(table) = self.table else {
            return self.list(|s| s.match_param(MatchKind::Exact, 8));
        };
        let fields = table.key.iter();
        fields
            .map(|field| self.match_param(field.kind, field.width))
            .collect()
    }

    fn match_param(&mut self, kind: MatchKind, width: u32) -> Result<MatchParam> {
        let mut param = MatchParam::default();
        match kind {
            MatchKind::Exact => {
                let key = self.bytes(width)?;
                (param.kind, param.exact) = (match_kind::EXACT, Some(MatchExact { key }));
            }
            MatchKind::Lpm => {
                let lpm = MatchLpm {
                    key: self.bytes(width)?,
                    prefix_length: self.number()? as i32,
                };
                (param.kind, param.lpm) = (match_kind::LPM, Some(lpm));
            }
            MatchKind::Ternary | MatchKind::Optional => {
                let ternary = MatchTernary {
                    key: self.bytes(width)?,
                    mask: self.bytes(width)?,
                };
                (param.kind, param.ternary) = (match_kind::TERNARY, Some(ternary));
            }
            MatchKind::Range => {
                let range = MatchRange {
                    start: self.bytes(width)?,
                    end: self.bytes(width)?,
                };
                (param.kind, param.range) = (match_kind::RANGE, Some(range));
            }
            MatchKind::Valid => {
                let key = self.input.arbitrary()?;
                (param.kind, param.valid) = (match_kind::VALID, Some(MatchValid { key }));
            }
        }
        if self.is_arbitrary()? {
            param.kind = self.input.int_in_range(-1..=6)?;
        }
        Ok(param)
    }

    fn rate(&mut self) -> Result<MeterRate> {
        Ok(MeterRate {
            units_per_micros: match self.is_arbitrary()? {
                true => self.input.arbitrary()?,
                false => f64::from(self.input.int_in_range(0..=3_u8)?),
            },
            burst_size: self.number()? as i32,
        })
    }

    fn options(&mut self) -> Result<EntryOptions> {
        let priority = self.number()? as i32;
        Ok(EntryOptions {
            priority: self.input.arbitrary::<bool>()?.then_some(priority),
        })
    }

    fn counter(&mut self) -> Result<CounterValue> {
        Ok(CounterValue {
            bytes: self.number()?,
            packets: self.number()?,
        })
    }

    fn crc16(&mut self) -> Result<Crc16Config> {
        Ok(Crc16Config {
            polynomial: self.input.arbitrary()?,
            data_reflected: self.input.arbitrary()?,
            ..Default::default()
        })
    }

    fn crc32(&mut self) -> Result<Crc32Config> {
        Ok(Crc32Config {
            polynomial: self.input.arbitrary()?,
            data_reflected: self.input.arbitrary()?,
            ..Default::default()
        })
    }

    fn session(&mut self) -> Result<MirroringSession> {
        let (port, mgid) = (self.number()? as i32, self.number()? as i32);
        Ok(MirroringSession {
            port: self.input.arbitrary::<bool>()?.then_some(port),
            mgid: self.input.arbitrary::<bool>()?.then_some(mgid),
        })
    }
}
