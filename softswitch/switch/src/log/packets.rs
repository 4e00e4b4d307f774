// SPDX-License-Identifier: Apache-2.0
//! The steps of packets as lines of BMv2's log. The wording, and the level of each line, are those of `simple_switch`, so
//! that people and scripts find what they know.

use std::fmt::{Display, Write};
use std::sync::Arc;

use softswitch_pipeline::{
    Call, Hit, InstanceType, Named, Outcome, Pass, Program, SourceLocation, Step, Trace,
};

use super::LogLevel;
use super::values::{criterion, digits, number};
use super::{Lines, Log};

/// Minimum width of the names of key fields.
const NAME_WIDTH: usize = 20;

/// The log of packets.
#[derive(Debug)]
pub struct PacketLog {
    log: Arc<Log>,
    drop_port: u32,
}

impl PacketLog {
    /// Returns the log of packets; `drop_port` is the port number that means "drop".
    pub fn new(log: Arc<Log>, drop_port: u32) -> Self {
        Self { log, drop_port }
    }

    /// Returns true if the log needs the traces of a program's packets: for their steps, or at level info for the messages
    /// of `log_msg`.
    pub fn needs_traces(&self, program: &Program) -> bool {
        self.log.is_on(LogLevel::Debug)
            || (self.log.is_on(LogLevel::Info) && program.logs_messages())
    }

    /// Logs passes of packets.
    pub fn write(&self, traces: &[Trace]) {
        let mut lines = self.log.lines();
        for trace in traces {
            let writer = PassWriter {
                lines: &mut lines,
                trace,
                drop_port: self.drop_port,
                block: Block::None,
                state: "",
                exits: false,
            };
            writer.write();
        }
        lines.write();
    }
}

/// A block of the program, whose beginning and end are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    None,
    Parser,
    Pipeline,
    Deparser,
}

/// Writes one pass of a packet.
struct PassWriter<'a, 'b> {
    lines: &'b mut Lines<'a>,
    trace: &'b Trace,
    drop_port: u32,
    block: Block,
    /// State of the parser.
    state: &'b str,
    /// The program has executed `exit`.
    exits: bool,
}

impl<'b> PassWriter<'_, 'b> {
    fn write(mut self) {
        let trace = self.trace;
        match trace.pass {
            Pass::Ingress => self.receive(),
            Pass::Egress if trace.outcome == Outcome::TailDrop => {}
            Pass::Egress => self.enter(Block::Pipeline),
        }
        for step in &trace.steps {
            self.step(step);
        }
        if trace.pass == Pass::Ingress {
            self.enter(Block::Pipeline);
        }
        self.enter(Block::None);
        self.copies();
        self.outcome();
    }

    fn log(&mut self, level: LogLevel, message: impl Display) {
        let (packet, copy) = (self.trace.packet.saturating_sub(1), self.trace.copy);
        self.lines
            .push(level, format_args!("[{packet}.{copy}] [cxt 0] {message}"));
    }

    fn debug(&mut self, message: impl Display) {
        self.log(LogLevel::Debug, message);
    }

    fn trace(&mut self, message: impl Display) {
        self.log(LogLevel::Trace, message);
    }

    /// Logs the reception, and the beginning of the parser.
    fn receive(&mut self) {
        let port = self.trace.port;
        self.debug(format_args!("Processing packet received on port {port}"));
        self.enter(Block::Parser);
    }

    /// Logs the end of a block and the beginning of the next.
    fn enter(&mut self, block: Block) {
        if block == self.block {
            return;
        }
        let pipeline = match self.trace.pass {
            Pass::Ingress => "Pipeline 'ingress'",
            Pass::Egress => "Pipeline 'egress'",
        };
        let name = |block| match block {
            Block::None => None,
            Block::Parser => Some("Parser 'parser'"),
            Block::Pipeline => Some(pipeline),
            Block::Deparser => Some("Deparser 'deparser'"),
        };
        if self.block == Block::Pipeline && std::mem::take(&mut self.exits) {
            self.debug("Packet is marked for exit, interrupting pipeline");
        }
        if let Some(name) = name(self.block) {
            self.debug(format_args!("{name}: end"));
        }
        self.block = block;
        if let Some(name) = name(block) {
            self.debug(format_args!("{name}: start"));
        }
    }

    fn step(&mut self, step: &'b Step) {
        match step {
            Step::ParserState { state } => {
                self.state = state;
                self.debug(format_args!("Parser 'parser' entering state '{state}'"));
            }
            Step::Extract { header, .. } => {
                self.debug(format_args!("Extracting header '{header}'"));
            }
            Step::Select {
                key,
                widths,
                parsed,
                ..
            } => {
                self.select(key, widths);
                self.trace(format_args!("Bytes parsed: {parsed}"));
            }
            Step::ParserError { error } => {
                self.log(
                    LogLevel::Error,
                    format_args!("Exception while parsing: {error}"),
                );
            }
            Step::Checksum {
                field,
                found,
                computed,
                correct,
            } => self.checksum(field, found, computed, *correct),
            Step::Changed { field, to, .. } => self.changed(field, to),
            Step::UpdateChecksums => self.enter(Block::Deparser),
            Step::Deparse { headers, .. } => {
                self.enter(Block::Deparser);
                for emitted in headers {
                    self.debug(format_args!("Deparsing header '{}'", emitted.header));
                }
            }
            Step::Extern { call, .. } if *call == "resubmit" => {
                self.enter(Block::Pipeline);
                self.enter(Block::None);
                self.debug("Resubmitting packet");
                self.receive();
            }
            other => {
                self.enter(Block::Pipeline);
                self.control(other);
            }
        }
    }

    fn select(&mut self, key: &Named, widths: &[u32]) {
        let state = self.state;
        if key.0.is_empty() {
            self.debug(format_args!(
                "Parser state '{state}' has no switch, going to default next state"
            ));
        } else {
            let parts = key.0.iter().zip(widths);
            let key: String = parts
                .map(|((_, value), width)| digits(value, *width))
                .collect();
            self.debug(format_args!("Parser state '{state}': key is {key}"));
        }
    }

    fn checksum(&mut self, field: &str, found: &str, computed: &str, correct: bool) {
        let (found, computed) = (digits(found, 0), digits(computed, 0));
        self.debug(format_args!(
            "Checksum '{field}': computed 0x{computed} - actual 0x{found}"
        ));
        let result = if correct { "passed" } else { "failed" };
        self.debug(format_args!("Verified checksum '{field}': {result}"));
        if !correct {
            let message = format_args!("Checksum '{field}' is not correct");
            self.log(LogLevel::Error, message);
        }
    }

    /// Logs the changes by the parser and the checksum update. The log shows the primitives of actions instead.
    fn changed(&mut self, field: &str, to: &str) {
        match self.block {
            Block::Parser => {
                self.debug(format_args!("Parser set: setting field '{field}' to {to}"));
            }
            Block::Deparser => self.debug(format_args!("Updating checksum '{field}'")),
            Block::None | Block::Pipeline => {}
        }
    }

    /// Logs a step of ingress or egress.
    fn control(&mut self, step: &Step) {
        match step {
            Step::Condition {
                name,
                source,
                holds,
            } => {
                let text = source.as_ref().map_or(name, |s| &s.text);
                let at = At(source);
                self.trace(format_args!("{at}Condition \"{text}\" ({name}) is {holds}"));
            }
            Step::Table {
                table,
                key,
                widths,
                hit,
                member,
                action,
            } => {
                self.trace(format_args!("Applying table '{table}'"));
                self.debug(format_args!("Looking up key:\n{}", Key(key, widths)));
                match hit {
                    Some(hit) => self.hit(table, Key(key, widths), hit, action.as_ref()),
                    None => self.debug(format_args!("Table '{table}': miss")),
                }
                if let Some(member) = member {
                    self.debug(format_args!("Choosing member {member}"));
                }
                match action {
                    Some(call) => {
                        self.debug(format_args!("Action entry is {}", Data(call)));
                        self.action(call);
                    }
                    None => self.debug("Action entry is NULL"),
                }
            }
            Step::Action(call) => self.action(call),
            Step::Primitive(source) => {
                let at = At(source);
                let text = source.as_ref().map_or("(no source info)", |s| &s.text);
                self.trace(format_args!("{at}Primitive {text}"));
            }
            Step::Extern { call, args } => self.external(call, args),
            _ => {}
        }
    }

    fn hit(&mut self, table: &str, key: Key<'_>, hit: &Hit, action: Option<&Call>) {
        let handle = hit.handle;
        self.debug(format_args!("Table '{table}': hit with handle {handle}"));
        let mut entry = format!("Dumping entry {handle}\nMatch key:\n");
        let name_width = key.name_width();
        for ((name, text), width) in hit.matches.0.iter().zip(key.1) {
            let (kind, text) = criterion(text, *width);
            // A String takes everything.
            let _ = writeln!(entry, "* {name:<name_width$}: {kind:<10}{text}");
        }
        if let Some(priority) = hit.priority {
            let _ = writeln!(entry, "Priority: {priority}");
        }
        if let Some(call) = action {
            let _ = writeln!(entry, "Action entry: {}", Data(call));
        }
        self.debug(entry);
    }

    fn action(&mut self, call: &Call) {
        let at = At(&call.source);
        self.trace(format_args!("{at}Action {}", call.name));
    }

    /// Logs the use of an extern.
    fn external(&mut self, call: &str, args: &Named) {
        let arg = |name: &str| {
            let found = args.0.iter().find(|(known, _)| known == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        match call {
            "register_read" => self.trace(format_args!(
                "Read register '{}' at index {} read value {}",
                arg("register"),
                arg("index"),
                arg("result")
            )),
            "register_write" => self.trace(format_args!(
                "Wrote register '{}' at index {} with value {}",
                arg("register"),
                arg("index"),
                arg("value")
            )),
            "count" => self.trace(format_args!(
                "Updated counter '{}' at index {}",
                arg("counter"),
                arg("index")
            )),
            "execute_meter" => {
                let (meter, index, color) = (arg("meter"), arg("index"), arg("result"));
                self.debug(format_args!("Executing meter {meter}[{index}]"));
                self.trace(format_args!(
                    "Updated meter '{meter}' at index {index}, assigning dest field the color result {color}"
                ));
            }
            "random" => self.trace(format_args!(
                "random(lo={}, hi={}) = {}",
                arg("low"),
                arg("high"),
                arg("result")
            )),
            "hash" => self.trace(format_args!(
                "hash(base={}, max={}) = {}",
                arg("base"),
                arg("size"),
                arg("result")
            )),
            "digest" => self.trace(format_args!("Learning sample for list {}", arg("list"))),
            // The program's own message has no packet number.
            "log_msg" => self.lines.push(LogLevel::Info, arg("text")),
            "exit" => self.exits = true,
            _ => {}
        }
    }

    /// Logs the copies that the pass has made.
    fn copies(&mut self) {
        let clone = match self.trace.pass {
            Pass::Ingress => InstanceType::IngressClone,
            Pass::Egress => InstanceType::EgressClone,
        };
        let clones = self.trace.enqueued.iter().filter(|e| e.instance == clone);
        let ports: Vec<u32> = clones.map(|e| e.port).collect();
        if ports.is_empty() {
            return;
        }
        let pass = match self.trace.pass {
            Pass::Ingress => "ingress",
            Pass::Egress => "egress",
        };
        self.debug(format_args!("Cloning packet at {pass}"));
        for port in ports {
            self.debug(format_args!("Cloning packet to egress port {port}"));
        }
    }

    fn outcome(&mut self) {
        match (&self.trace.outcome, self.trace.pass) {
            (Outcome::Unicast { port }, _) => self.debug(format_args!("Egress port is {port}")),
            (Outcome::Multicast { group, .. }, _) => self.replicate(*group),
            (Outcome::Dropped { .. }, Pass::Ingress) => {
                let port = self.drop_port;
                self.debug(format_args!("Egress port is {port}"));
                self.debug("Dropping packet at the end of ingress");
            }
            (Outcome::Dropped { .. }, Pass::Egress) => {
                self.debug("Dropping packet at the end of egress");
            }
            (Outcome::Transmitted { port, length }, _) => self.debug(format_args!(
                "Transmitting packet of size {length} out of port {port}"
            )),
            (Outcome::Recirculated, _) => self.debug("Recirculating packet"),
            (Outcome::TailDrop, _) => {
                let port = self.trace.port;
                self.debug(format_args!(
                    "Dropping packet: the queue of port {port} is full"
                ));
            }
            (Outcome::AssertionFailed, _) => {
                self.log(LogLevel::Error, "Assertion failed, dropping packet");
            }
            (other, _) => {
                let text = other.to_string();
                let reason = text.strip_prefix("dropped: ").unwrap_or(&text);
                self.log(LogLevel::Error, format_args!("Dropping packet: {reason}"));
            }
        }
    }

    fn replicate(&mut self, group: u32) {
        self.debug("Multicast requested for packet");
        let copies = self.trace.enqueued.iter();
        let copies = copies.filter(|e| e.instance == InstanceType::Replication);
        let ports: Vec<u32> = copies.map(|e| e.port).collect();
        self.lines.push(
            LogLevel::Debug,
            format_args!(
                "number of packets replicated : {} for MGID: {group}",
                ports.len()
            ),
        );
        for port in ports {
            self.debug(format_args!("Replicating packet on port {port}"));
        }
    }
}

/// A position in the program, in front of a line's text.
struct At<'a>(&'a Option<SourceLocation>);

impl Display for At<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(at) => write!(f, "{}({}) ", at.file, at.line),
            None => Ok(()),
        }
    }
}

/// An action with its data.
struct Data<'a>(&'a Call);

impl Display for Data<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} - ", self.0.name)?;
        for (_, value) in &self.0.args.0 {
            write!(f, "{},", number(value))?;
        }
        Ok(())
    }
}

/// A packet's key, one field a line, with the widths of its fields.
struct Key<'a>(&'a Named, &'a [u32]);

impl Key<'_> {
    /// Returns the width of the column of names.
    fn name_width(&self) -> usize {
        let widths = self.0.0.iter().map(|(name, _)| name.len());
        widths.fold(NAME_WIDTH, usize::max)
    }
}

impl Display for Key<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name_width = self.name_width();
        for ((name, value), width) in self.0.0.iter().zip(self.1) {
            writeln!(f, "* {name:<name_width$}: {}", digits(value, *width))?;
        }
        Ok(())
    }
}
