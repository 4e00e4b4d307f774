// SPDX-License-Identifier: Apache-2.0
//! Parses STF files (p4c's simple test framework).

use std::fmt::{self, Display, Formatter};

use crate::pattern::Pattern;

/// One statement, with its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub number: usize,
    pub statement: Statement,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    Packet {
        port: u32,
        data: Vec<u8>,
    },
    Expect {
        port: u32,
        pattern: Option<Pattern>,
    },
    Add {
        table: String,
        priority: Option<i32>,
        keys: Vec<(String, String)>,
        action: Call,
        /// The script's label of the entry: `= A`.
        label: Option<String>,
    },
    SetDefault {
        table: String,
        action: Call,
    },
    MirroringAdd {
        session: u32,
        port: u32,
    },
    MirroringAddMulticast {
        session: u32,
        group: u32,
    },
    MirroringDelete {
        session: u32,
    },
    GroupCreate {
        group: u32,
    },
    /// Handles count from 0, in order of creation.
    NodeCreate {
        rid: u16,
        ports: Vec<u32>,
    },
    NodeAssociate {
        group: u32,
        handle: usize,
    },
    RegisterWrite {
        name: String,
        index: usize,
        value: u64,
    },
    RegisterReset {
        name: String,
    },
    CounterWrite {
        name: String,
        index: usize,
        packets: u64,
        bytes: u64,
    },
    CheckCounter {
        name: String,
        of: Counted,
        bytes: bool,
        order: String,
        value: u64,
    },
    MeterSet {
        name: String,
        index: Option<usize>,
        rates: Vec<(f64, u64)>,
    },
    /// A statement without effect in process: waits, and reads without a check.
    Nothing,
}

/// The cell of a counter.
#[derive(Debug, Clone, PartialEq)]
pub enum Counted {
    Index(usize),
    /// The entry with this label: `$A`.
    Entry(String),
}

impl Display for Counted {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Counted::Index(index) => index.fmt(f),
            Counted::Entry(label) => write!(f, "${label}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub name: String,
    pub args: Vec<(String, String)>,
}

/// Parses a number: decimal, `0x`, `0b` or `0o`.
pub fn number(text: &str) -> Result<u64, String> {
    let radix = |digits, radix| u64::from_str_radix(digits, radix);
    let parsed = match text.get(..2) {
        Some("0x" | "0X") => radix(&text[2..], 16),
        Some("0b" | "0B") => radix(&text[2..], 2),
        Some("0o" | "0O") => radix(&text[2..], 8),
        _ => text.parse(),
    };
    parsed.map_err(|_| format!("invalid number {text:?}"))
}

/// Parses a file; an error names its line.
pub fn parse(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if !line.is_empty() {
            let statement = statement(line).map_err(|e| format!("line {}: {e}", i + 1))?;
            lines.push(Line {
                number: i + 1,
                statement,
            });
        }
    }
    Ok(lines)
}

fn hex_bytes(words: &[&str]) -> Result<Vec<u8>, String> {
    let text: String = words.concat();
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return Err("packet data must be whole bytes in hexadecimal".to_owned());
    }
    let byte = |i| u8::from_str_radix(&text[i..i + 2], 16).map_err(|e| e.to_string());
    (0..text.len()).step_by(2).map(byte).collect()
}

/// `name(arg:value, ...)`.
fn call(text: &str) -> Result<Call, String> {
    let open = text.find('(').ok_or("an action needs parentheses")?;
    let args = text[open + 1..]
        .trim_end()
        .strip_suffix(')')
        .ok_or("missing closing parenthesis")?;
    let pair = |arg: &str| {
        let (name, value) = arg
            .split_once(':')
            .ok_or_else(|| format!("invalid argument {arg:?}: expected name:value"))?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    let args = args.split(',').filter(|a| !a.trim().is_empty()).map(pair);
    Ok(Call {
        name: text[..open].trim().to_owned(),
        args: args.collect::<Result<_, String>>()?,
    })
}

fn add(rest: &str) -> Result<Statement, String> {
    // The action is the last word before the parenthesis; an entry may have a label behind it.
    let end = rest.rfind(')').ok_or("missing action")?;
    let (rest, behind) = rest.split_at(end + 1);
    let label = match behind.trim().split_once('=') {
        Some(("", label)) => Some(label.trim().to_owned()),
        None if behind.trim().is_empty() => None,
        _ => {
            return Err(format!(
                "invalid label {:?}: expected = NAME",
                behind.trim()
            ));
        }
    };
    let open = rest.find('(').ok_or("an action needs parentheses")?;
    let start = rest[..open]
        .trim_end()
        .rfind(char::is_whitespace)
        .ok_or("missing table")?;
    let action = call(rest[start..].trim())?;
    let mut words = rest[..start].split_whitespace().peekable();
    let table = words.next().ok_or("missing table")?.to_owned();
    let priority = match words.peek() {
        Some(w) if !w.contains(':') => Some(number(words.next().unwrap_or(""))? as i32),
        _ => None,
    };
    let key = |w: &str| {
        let (name, value) = w
            .split_once(':')
            .ok_or_else(|| format!("invalid match {w:?}: expected field:value"))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    let keys = words.map(key).collect::<Result<_, String>>()?;
    Ok(Statement::Add {
        table,
        priority,
        keys,
        action,
        label,
    })
}

/// Parses `name(index) [bytes|packets order value]`; the index may be an entry's `$label`.
fn check_counter(rest: &str) -> Result<Statement, String> {
    let (name, rest) = rest.split_once('(').ok_or("expected counter(index)")?;
    let (index, rest) = rest.split_once(')').ok_or("missing closing parenthesis")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let (bytes, order, value) = match words.as_slice() {
        [] => (false, "==", "0"),
        [order, value] => (false, *order, *value),
        [unit, order, value, ..] => (*unit == "bytes", *order, *value),
        _ => return Err("expected packets or bytes, a comparison and a number".to_owned()),
    };
    Ok(Statement::CheckCounter {
        name: name.trim().to_owned(),
        of: match index.trim().strip_prefix('$') {
            Some(label) => Counted::Entry(label.to_owned()),
            None => Counted::Index(number(index.trim())? as usize),
        },
        bytes,
        order: order.to_owned(),
        value: number(value)?,
    })
}

fn rates(words: &[&str]) -> Result<Vec<(f64, u64)>, String> {
    let rate = |w: &&str| {
        let (rate, burst) = w
            .split_once(':')
            .ok_or_else(|| format!("invalid rate {w:?}: expected rate:burst"))?;
        Ok((
            rate.parse().map_err(|_| format!("invalid rate {rate:?}"))?,
            number(burst)?,
        ))
    };
    words.iter().map(rate).collect()
}

fn statement(line: &str) -> Result<Statement, String> {
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let words: Vec<&str> = rest.split_whitespace().collect();
    let word = |i: usize| {
        words
            .get(i)
            .copied()
            .ok_or_else(|| format!("missing arguments of {command}"))
    };
    let num = |i: usize| number(word(i)?);
    Ok(match command {
        "packet" => Statement::Packet {
            port: num(0)? as u32,
            data: hex_bytes(&words[1..])?,
        },
        "expect" => {
            let text = words.get(1..).unwrap_or(&[]).concat();
            let pattern = if text.is_empty() {
                None
            } else {
                Some(Pattern::parse(&text)?)
            };
            Statement::Expect {
                port: num(0)? as u32,
                pattern,
            }
        }
        "add" => add(rest)?,
        "setdefault" => {
            let (table, action) = rest
                .trim()
                .split_once(char::is_whitespace)
                .ok_or("missing action")?;
            Statement::SetDefault {
                table: table.to_owned(),
                action: call(action)?,
            }
        }
        "mirroring_add" => Statement::MirroringAdd {
            session: num(0)? as u32,
            port: num(1)? as u32,
        },
        "mirroring_add_mc" => Statement::MirroringAddMulticast {
            session: num(0)? as u32,
            group: num(1)? as u32,
        },
        "mirroring_delete" => Statement::MirroringDelete {
            session: num(0)? as u32,
        },
        "mc_mgrp_create" => Statement::GroupCreate {
            group: num(0)? as u32,
        },
        "mc_node_create" => {
            let ports = words[1..].iter().map(|w| Ok(number(w)? as u32));
            Statement::NodeCreate {
                rid: num(0)? as u16,
                ports: ports.collect::<Result<_, String>>()?,
            }
        }
        "mc_node_associate" => Statement::NodeAssociate {
            group: num(0)? as u32,
            handle: num(1)? as usize,
        },
        "register_write" => Statement::RegisterWrite {
            name: word(0)?.to_owned(),
            index: num(1)? as usize,
            value: num(2)?,
        },
        "register_reset" => Statement::RegisterReset {
            name: word(0)?.to_owned(),
        },
        "counter_write" => Statement::CounterWrite {
            name: word(0)?.to_owned(),
            index: num(1)? as usize,
            packets: num(2)?,
            bytes: num(3)?,
        },
        "check_counter" => check_counter(rest)?,
        "meter_set_rates" => Statement::MeterSet {
            name: word(0)?.to_owned(),
            index: Some(num(1)? as usize),
            rates: rates(&words[2..])?,
        },
        "meter_array_set_rates" => Statement::MeterSet {
            name: word(0)?.to_owned(),
            index: None,
            rates: rates(&words[1..])?,
        },
        "wait" | "no_packet" | "remove" | "mirroring_get" | "register_read" | "counter_read"
        | "meter_get_rates" => Statement::Nothing,
        other => return Err(format!("unknown statement {other}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_statements() {
        let lines = parse(
            "# comment\n\
             packet 1 00 01 0203\n\
             expect 2 0**1 ff $\n\
             expect 3\n\
             add t 10 h.a:0x1* h.b:10.0/8 act(x:1, y:0xff) = name\n\
             setdefault t act()\n",
        )
        .unwrap();
        assert_eq!(
            lines[0].statement,
            Statement::Packet {
                port: 1,
                data: vec![0, 1, 2, 3]
            }
        );
        let expected = Statement::Expect {
            port: 2,
            pattern: Some(Pattern::parse("0**1ff$").unwrap()),
        };
        assert_eq!(lines[1].statement, expected);
        assert_eq!(
            lines[2].statement,
            Statement::Expect {
                port: 3,
                pattern: None
            }
        );
        let Statement::Add {
            table,
            priority,
            keys,
            action,
            label,
        } = &lines[3].statement
        else {
            panic!()
        };
        assert_eq!((table.as_str(), *priority, keys.len()), ("t", Some(10), 2));
        assert_eq!(action.args[1], ("y".to_owned(), "0xff".to_owned()));
        assert_eq!(label.as_deref(), Some("name"));
        assert_eq!(
            parse("\nbogus 1").unwrap_err(),
            "line 2: unknown statement bogus"
        );
    }
}
