// SPDX-License-Identifier: Apache-2.0
//! Differences between expected and received packets, as readable text.

use std::fmt::{self, Display, Formatter, Write};

use softswitch_pipeline::{Outcome, Paragraphs, Step, Trace};

use crate::pattern::Pattern;

/// Bytes per row.
const ROW: usize = 16;

/// A difference from the script's expectations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The script's line with the expectation, or of the packet that caused an unexpected one.
    pub line: usize,
    /// The difference; further lines contain the bytes.
    pub message: String,
    /// The packet's trace; empty if the difference is not about a packet.
    pub trace: String,
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

/// A packet that a script expects.
pub(crate) struct Expected {
    pub(crate) line: usize,
    /// Number of the script's packets before it.
    pub(crate) after: u64,
    /// `None` accepts any packet.
    pub(crate) pattern: Option<Pattern>,
}

/// A packet that the program sent.
pub(crate) struct Arrived {
    /// The script's line of the original packet.
    pub(crate) line: usize,
    /// Number of the original packet.
    pub(crate) packet: u64,
    pub(crate) frame: Vec<u8>,
}

impl Difference {
    /// Compares the packets of one port, in order.
    pub(crate) fn of_port(
        port: u32,
        expected: &[Expected],
        arrived: &[Arrived],
        traces: &[Trace],
    ) -> Vec<Self> {
        let mut list = Vec::new();
        let patterns = expected.iter().filter_map(|e| e.pattern.as_ref());
        for (i, (e, pattern)) in expected.iter().zip(patterns).enumerate() {
            let Some(packet) = arrived.get(i) else {
                list.push(Self {
                    line: e.line,
                    message: format!(
                        "port {port}: no packet was sent\n{}",
                        rows(Some(pattern), &[])
                    ),
                    trace: trace_of(traces, e.after),
                });
                continue;
            };
            let Some(at) = pattern.differs_at(&packet.frame) else {
                continue;
            };
            let what = match (packet.frame.get(at), pattern.byte(at)) {
                (Some(have), Some(want)) => {
                    let place = place(traces, port, packet, at);
                    format!("byte {at}{place} is {have:02x}, expected {want}")
                }
                (None, _) => format!("it has {at} bytes, expected {}", pattern.len()),
                (Some(_), None) => format!("it has {} bytes, expected {at}", packet.frame.len()),
            };
            list.push(Self {
                line: e.line,
                message: format!(
                    "port {port}, from the packet of line {}: {what}\n{}",
                    packet.line,
                    rows(Some(pattern), &packet.frame)
                ),
                trace: trace_of(traces, packet.packet),
            });
        }
        for packet in arrived.iter().skip(expected.len()) {
            list.push(Self {
                line: packet.line,
                message: format!(
                    "port {port}: unexpected packet\n{}",
                    rows(None, &packet.frame)
                ),
                trace: trace_of(traces, packet.packet),
            });
        }
        list
    }
}

fn trace_of(traces: &[Trace], packet: u64) -> String {
    let (mut text, mut paragraphs) = (String::new(), Paragraphs::default());
    for trace in traces.iter().filter(|t| t.packet == packet) {
        paragraphs.push(&mut text, trace);
    }
    text
}

/// Returns the header that byte `at` belongs to, from the deparser's trace.
fn place(traces: &[Trace], port: u32, packet: &Arrived, at: usize) -> String {
    let length = packet.frame.len();
    let sent = traces
        .iter()
        .find(|t| t.packet == packet.packet && t.outcome == Outcome::Transmitted { port, length });
    let headers = sent
        .into_iter()
        .flat_map(|t| &t.steps)
        .find_map(|s| match s {
            Step::Deparse { headers, .. } => Some(headers),
            _ => None,
        });
    let Some(headers) = headers else {
        return String::new();
    };
    let mut first = 0;
    for e in headers {
        if at < first + e.bytes {
            return format!(" (byte {} of {})", at - first, e.header);
        }
        first += e.bytes;
    }
    format!(" (byte {} of the payload)", at - first)
}

/// Formats expected and received bytes side by side, or those of one side; `^^` marks differences.
fn rows(pattern: Option<&Pattern>, frame: &[u8]) -> String {
    let len = frame.len().max(pattern.map_or(0, Pattern::len));
    let both = pattern.is_some() && !frame.is_empty();
    let width = if both { ROW * 3 - 1 } else { 0 };
    let mut text = String::new();
    if both {
        let _ = writeln!(text, "          {:width$}   got", "expected");
    }
    for first in (0..len).step_by(ROW) {
        let row = || first..(first + ROW).min(len);
        let side = |byte: &dyn Fn(usize) -> Option<String>| {
            let bytes = row().map(|i| byte(i).unwrap_or_else(|| "  ".to_owned()));
            bytes.collect::<Vec<_>>().join(" ")
        };
        let want = side(&|i| pattern.and_then(|p| p.byte(i)));
        let have = side(&|i| frame.get(i).map(|b| format!("{b:02x}")));
        let marked = |i| pattern.is_some_and(|p| !p.agrees_at(i, frame));
        let marks = side(&|i| marked(i).then(|| "^^".to_owned()));
        let line = if both {
            format!("{want:width$}   {have}")
        } else {
            [want, have].concat().trim().to_owned()
        };
        let _ = writeln!(text, "  {first:#06x}  {}", line.trim_end());
        if both && marks.contains('^') {
            let line = format!("          {marks:width$}   {marks}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text.truncate(text.trim_end().len());
    text
}
