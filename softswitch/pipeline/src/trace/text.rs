// SPDX-License-Identifier: Apache-2.0
//! Formats traces as text.
//!
//! The first line of a pass is not indented, the steps are, and the last line is the packet's fate.

use std::fmt::{self, Display, Formatter};

use super::{Call, Hit, Named, Outcome, Pass, Step, Trace};
use crate::packet::InstanceType;
use crate::program::source::SourceLocation;

impl Display for Named {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        for (i, (name, value)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{name} = {value}")?;
        }
        Ok(())
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{}({}){}", self.name, self.args, At(&self.source))
    }
}

impl Display for Hit {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{}", self.matches)?;
        self.priority
            .map_or(Ok(()), |p| write!(f, ", priority {p}"))
    }
}

/// The file's name and the line, if known.
struct At<'a>(&'a Option<SourceLocation>);

impl Display for At<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self.0 {
            Some(place) => {
                let file = place.file.rsplit('/').next().unwrap_or_default();
                write!(f, "  [{file}:{}]", place.line)
            }
            None => Ok(()),
        }
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Step::ParserState { state } => write!(f, "  state {state}"),
            Step::Extract { header, fields } => write!(f, "    extract {header}: {fields}"),
            Step::Select { key, next, .. } if key.0.is_empty() => write!(f, "    to {next}"),
            Step::Select { key, next, .. } => write!(f, "    select {key}: to {next}"),
            Step::ParserError { error } => write!(f, "    error {error}"),
            Step::Checksum {
                field,
                found,
                correct: true,
                ..
            } => write!(f, "  checksum {field} = {found} is correct"),
            Step::Checksum {
                field,
                found,
                computed,
                ..
            } => write!(
                f,
                "  checksum {field} = {found} is wrong: expected {computed}"
            ),
            Step::Condition {
                name,
                source,
                holds,
            } => {
                let text = source.as_ref().map_or(name, |s| &s.text);
                write!(f, "  if {text}: {holds}{}", At(source))
            }
            Step::Table {
                table,
                key,
                hit,
                member,
                action,
                ..
            } => {
                write!(f, "  table {table}")?;
                if !key.0.is_empty() {
                    write!(f, ": {key}")?;
                }
                match hit {
                    Some(hit) => write!(f, "\n    hit {hit}")?,
                    None => write!(f, "\n    miss")?,
                }
                if let Some(member) = member {
                    write!(f, "\n    member {member}")?;
                }
                match action {
                    Some(call) => write!(f, "\n    {call}"),
                    None => write!(f, "\n    no action"),
                }
            }
            Step::Action(call) => write!(f, "  action {call}"),
            Step::Primitive(source) => {
                let text = source.as_ref().map_or("", |s| s.text.as_str());
                write!(f, "      {text}{}", At(source))
            }
            Step::HeaderAdded { header, fields } => write!(f, "      {header} added: {fields}"),
            Step::HeaderRemoved { header } => write!(f, "      {header} removed"),
            Step::Changed { field, from, to } => write!(f, "      {field}: {from} -> {to}"),
            Step::Extern { call, args } => write!(f, "      {call}({args})"),
            Step::UpdateChecksums => write!(f, "  update checksums"),
            Step::Deparse {
                headers, payload, ..
            } => {
                write!(f, "  deparse ")?;
                for e in headers {
                    write!(f, "{} ({}), ", e.header, e.bytes)?;
                }
                write!(f, "payload ({payload})")
            }
        }
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Outcome::Unicast { port } => write!(f, "to port {port}"),
            Outcome::Multicast { group, copies } => {
                write!(f, "to multicast group {group}: {copies} copies")
            }
            Outcome::Dropped { by: Some(action) } => write!(f, "dropped by {action}"),
            Outcome::Dropped { by: None } => write!(f, "dropped: egress_spec is the drop port"),
            Outcome::TooLong => write!(f, "dropped: too long"),
            Outcome::ParserError => write!(f, "dropped: the parser rejected it"),
            Outcome::TooManyResubmits => write!(f, "dropped: resubmitted too often"),
            Outcome::TooManyIterations => write!(f, "dropped: too many loop iterations"),
            Outcome::AssertionFailed => write!(f, "dropped: assertion failed"),
            Outcome::TailDrop => write!(f, "tail drop: the queue is full"),
            Outcome::Transmitted { port, length } => {
                write!(f, "sent by port {port}, {length} bytes")
            }
            Outcome::Recirculated => write!(f, "recirculated"),
        }
    }
}

fn kind(instance: InstanceType) -> &'static str {
    match instance {
        InstanceType::Normal => "",
        InstanceType::IngressClone | InstanceType::EgressClone => " (clone)",
        InstanceType::Coalesced => " (coalesced)",
        InstanceType::Recirculated => " (recirculated)",
        InstanceType::Replication => " (multicast)",
        InstanceType::Resubmitted => " (resubmitted)",
    }
}

/// Formats one pass as lines of text.
impl Display for Trace {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let as_what = kind(self.instance);
        let way = match self.pass {
            Pass::Ingress => "in by",
            Pass::Egress => "out to",
        };
        let (packet, port, length) = (self.packet, self.port, self.length);
        let (s, ns) = (self.time_ns / 1_000_000_000, self.time_ns % 1_000_000_000);
        writeln!(
            f,
            "packet {packet}{as_what} {way} port {port} at {s}.{ns:09} s, {length} bytes"
        )?;
        for step in self.steps.iter().filter(|step| !step.is_primitive()) {
            writeln!(f, "{step}")?;
        }
        for e in &self.enqueued {
            // For a unicast packet, the outcome contains the port.
            if e.instance != InstanceType::Normal {
                let kind = kind(e.instance);
                writeln!(f, "  to port {}{kind}, {} bytes", e.port, e.length)?;
            }
        }
        writeln!(f, "  {}", self.outcome)
    }
}

/// Formats traces so that consecutive passes of one packet form a paragraph.
#[derive(Debug, Default)]
pub struct Paragraphs {
    packet: Option<u64>,
}

impl Paragraphs {
    /// Appends a pass, after an empty line if the last one belongs to another packet.
    pub fn push(&mut self, text: &mut String, trace: &Trace) {
        if self.packet.is_some_and(|last| last != trace.packet) {
            text.push('\n');
        }
        self.packet = Some(trace.packet);
        text.push_str(&trace.to_string());
    }
}
