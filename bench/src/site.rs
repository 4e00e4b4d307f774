//! A site's file, and a pipeline with the site's program and entries.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use softswitch_pipeline::{
    ActionCall, Entry, EntryAction, EntryKey, MatchField, Options, Pipeline, Program, Value,
};

use crate::traffic::Traffic;

/// What `bench/sites.py` writes. Numbers of table entries are hexadecimal text, since some have 128 bits.
#[derive(Deserialize)]
pub struct Site {
    program: PathBuf,
    entries: Vec<SiteEntry>,
    /// Frames that the controller sends in by the CPU port, in hexadecimal.
    packets_out: Vec<String>,
    cpu_port: u32,
    pub traffic: Traffic,
}

#[derive(Deserialize)]
struct SiteEntry {
    table: String,
    /// `value` of an exact field, `value/length` of a prefix, `value&mask`, `low-high`; none at all for a default action.
    #[serde(rename = "match")]
    fields: Vec<String>,
    #[serde(default)]
    priority: i32,
    action: String,
    params: Vec<String>,
}

impl Site {
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no site", path.display()))
    }

    /// The program with every entry installed, and told what the controller tells it by packets.
    pub fn pipeline(&self) -> Result<Pipeline> {
        let json = fs::read_to_string(&self.program).with_context(|| {
            format!(
                "reading {}; `make setup` compiles it",
                self.program.display()
            )
        })?;
        let mut pipeline = Pipeline::new(Program::load(&json)?, Options::default());
        for entry in &self.entries {
            entry
                .install(&mut pipeline)
                .with_context(|| format!("an entry of {}", entry.table))?;
        }
        let mut queue = Vec::new();
        for packet in &self.packets_out {
            pipeline.ingress(self.cpu_port, &from_hex(packet)?, 0, &mut queue);
        }
        if !queue.is_empty() {
            bail!("the program forwards what the controller tells it");
        }
        Ok(pipeline)
    }
}

impl SiteEntry {
    fn install(&self, pipeline: &mut Pipeline) -> Result<()> {
        let info = pipeline.program().info();
        let table = info
            .table(&self.table)
            .context("no such table in the program")?;
        let (_, action) = info.tables[table.index()]
            .actions
            .iter()
            .find(|(name, _)| name.rsplit('.').next() == Some(&self.action))
            .with_context(|| format!("no action {} in this table", self.action))?;
        let args = self
            .params
            .iter()
            .map(|p| value(p))
            .collect::<Result<_>>()?;
        let action = EntryAction::Direct(ActionCall {
            action: *action,
            args,
        });
        if self.fields.is_empty() {
            return Ok(pipeline.set_default_action(table, Some(action))?);
        }
        let fields = self
            .fields
            .iter()
            .map(|f| field(f))
            .collect::<Result<_>>()?;
        let key = EntryKey {
            fields,
            priority: self.priority,
        };
        let entry = Entry {
            key,
            action,
            idle_timeout: 0,
        };
        Ok(pipeline.insert_entry(table, entry, 0)?)
    }
}

fn field(text: &str) -> Result<MatchField> {
    if let Some((prefix, len)) = text.split_once('/') {
        let (value, prefix_len) = (value(prefix)?, len.parse()?);
        return Ok(MatchField::Lpm { value, prefix_len });
    }
    if let Some((bits, mask)) = text.split_once('&') {
        let (value, mask) = (value(bits)?, value(mask)?);
        return Ok(MatchField::Ternary { value, mask });
    }
    if let Some((low, high)) = text.split_once('-') {
        let (low, high) = (value(low)?, value(high)?);
        return Ok(MatchField::Range { low, high });
    }
    Ok(MatchField::Exact(value(text)?))
}

fn value(text: &str) -> Result<Value> {
    let number =
        u128::from_str_radix(text, 16).with_context(|| format!("'{text}' is no number"))?;
    Ok(number.into())
}

/// The bytes that hexadecimal text stands for.
pub fn from_hex(text: &str) -> Result<Vec<u8>> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?))
        .collect::<Result<_>>()
        .map_err(|e: anyhow::Error| anyhow!("'{text}' is no hexadecimal text: {e}"))
}
