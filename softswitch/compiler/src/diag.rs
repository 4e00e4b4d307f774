// SPDX-License-Identifier: Apache-2.0
//! Source files, positions in them, and messages about them.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

pub use warning::{Action, Policy, Warning};

mod warning;

/// A range of one source file, in byte offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    pub file: u32,
    pub lo: u32,
    pub hi: u32,
}

impl Span {
    /// Returns the smallest span that covers both; ignores `other` if it is in another file.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span {
            file: self.file,
            lo: self.lo.min(other.lo),
            hi: self.hi.max(other.hi),
        }
    }
}

/// One source file.
pub struct SourceFile {
    pub name: String,
    pub text: Rc<str>,
    line_starts: Vec<u32>,
}

/// All source files of one compilation.
#[derive(Default)]
pub struct SourceMap {
    files: RefCell<Vec<Rc<SourceFile>>>,
}

/// A position for display: line and column start at 1.
pub struct LineCol {
    pub file: String,
    pub line: u32,
    pub col: u32,
}

impl SourceMap {
    pub fn add(&self, name: String, text: String) -> u32 {
        let mut line_starts = vec![0];
        line_starts.extend(
            text.bytes()
                .enumerate()
                .filter(|(_, b)| *b == b'\n')
                .map(|(i, _)| i as u32 + 1),
        );
        let mut files = self.files.borrow_mut();
        files.push(Rc::new(SourceFile {
            name,
            text: text.into(),
            line_starts,
        }));
        files.len() as u32 - 1
    }

    pub fn file(&self, id: u32) -> Rc<SourceFile> {
        self.files.borrow()[id as usize].clone()
    }

    /// Returns the names of the files, in the order of their first use.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for file in self.files.borrow().iter() {
            if !names.contains(&file.name) {
                names.push(file.name.clone());
            }
        }
        names
    }

    /// Returns the source text of `span`.
    pub fn snippet(&self, span: Span) -> String {
        let file = self.file(span.file);
        file.text
            .get(span.lo as usize..span.hi as usize)
            .unwrap_or("")
            .to_string()
    }

    pub fn line_col(&self, span: Span) -> LineCol {
        let file = self.file(span.file);
        let line = file.line_starts.partition_point(|s| *s <= span.lo) as u32;
        let start = file.line_starts[line as usize - 1] as usize;
        let col = file
            .text
            .get(start..span.lo as usize)
            .map_or(0, |t| t.chars().count()) as u32
            + 1;
        LineCol {
            file: file.name.clone(),
            line,
            col,
        }
    }

    fn line_text(&self, span: Span) -> String {
        let file = self.file(span.file);
        let line = file.line_starts.partition_point(|s| *s <= span.lo);
        let start = file.line_starts[line - 1] as usize;
        let rest = file.text.get(start..).unwrap_or("");
        rest.lines().next().unwrap_or("").to_string()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    /// The program is valid, but the target does not support it: there is no JSON, but P4Info.
    Unsupported,
    Warning(Warning),
}

/// One message about the program.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    pub severity: Severity,
    pub span: Option<Span>,
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// Maximum number of messages, because a generated program may have one in every line.
const MAX_MESSAGES: usize = 1000;

/// Maximum length of a displayed source line, in characters.
const MAX_SHOWN: usize = 400;

/// Collects messages; shared by all stages of one compilation.
#[derive(Default)]
pub struct Diagnostics {
    list: RefCell<Vec<Diagnostic>>,
    policy: Policy,
}

impl Diagnostics {
    pub fn new(policy: Policy) -> Self {
        let list = RefCell::default();
        Diagnostics { list, policy }
    }

    fn push(&self, severity: Severity, span: Option<Span>, message: String, hint: Option<String>) {
        let mut list = self.list.borrow_mut();
        if list.len() >= MAX_MESSAGES {
            return;
        }
        // Two stages may report the same fault at the same place.
        if list
            .iter()
            .any(|d| d.severity == severity && d.span == span && d.message == message)
        {
            return;
        }
        list.push(Diagnostic {
            severity,
            span,
            message,
            hint,
        });
    }

    pub fn error(&self, span: Span, message: impl Into<String>) {
        self.push(Severity::Error, Some(span), message.into(), None);
    }

    pub fn error_hint(&self, span: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.push(
            Severity::Error,
            Some(span),
            message.into(),
            Some(hint.into()),
        );
    }

    /// Reports a feature of P4 that the target does not support.
    pub fn unsupported(&self, span: Span, message: impl Into<String>) {
        self.push(Severity::Unsupported, Some(span), message.into(), None);
    }

    pub fn unsupported_hint(
        &self,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let hint = Some(hint.into());
        self.push(Severity::Unsupported, Some(span), message.into(), hint);
    }

    /// Reports an error about the compilation as a whole.
    pub fn error_global(&self, message: impl Into<String>, hint: Option<String>) {
        self.push(Severity::Error, None, message.into(), hint);
    }

    pub fn warn(&self, kind: Warning, span: Span, message: impl Into<String>) {
        self.warning(kind, span, message.into(), None);
    }

    pub fn warn_hint(
        &self,
        kind: Warning,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.warning(kind, span, message.into(), Some(hint.into()));
    }

    fn warning(&self, kind: Warning, span: Span, message: String, hint: Option<String>) {
        let (severity, message) = match self.policy.action(kind) {
            Action::Ignore => return,
            Action::Warn => (Severity::Warning(kind), message),
            Action::Error => {
                let message = format!("{message} [--Werror={}]", kind.name());
                (Severity::Error, message)
            }
        };
        self.push(severity, Some(span), message, hint);
    }

    /// Returns true if there is any error: the program is invalid, or the target does not support it.
    pub fn has_errors(&self) -> bool {
        self.error_count() > 0
    }

    pub fn error_count(&self) -> usize {
        self.list
            .borrow()
            .iter()
            .filter(|d| !matches!(d.severity, Severity::Warning(_)))
            .count()
    }

    /// Returns true if the program is invalid on every target.
    pub fn is_invalid_program(&self) -> bool {
        let list = self.list.borrow();
        list.iter().any(|d| d.severity == Severity::Error)
    }

    pub fn list(&self) -> Vec<Diagnostic> {
        self.list.borrow().clone()
    }

    /// Formats all messages for a terminal, in the order in which they were found.
    pub fn render(&self, sources: &SourceMap) -> String {
        let mut out = String::new();
        for d in self.list.borrow().iter() {
            let word = match d.severity {
                Severity::Error | Severity::Unsupported => "error",
                Severity::Warning(_) => "warning",
            };
            let kind = match d.severity {
                Severity::Warning(kind) => format!(" [--Wwarn={}]", kind.name()),
                _ => String::new(),
            };
            match d.span {
                Some(span) => {
                    let at = sources.line_col(span);
                    let _ = writeln!(
                        out,
                        "{}:{}:{}: {word}: {}{kind}",
                        at.file, at.line, at.col, d.message
                    );
                    let line = sources.line_text(span);
                    if line.chars().count() <= MAX_SHOWN {
                        let _ = writeln!(out, "{line}");
                        let pad: String = line
                            .chars()
                            .take(at.col as usize - 1)
                            .map(|c| if c == '\t' { '\t' } else { ' ' })
                            .collect();
                        let left = line.chars().count().saturating_sub(at.col as usize - 1);
                        let width = sources
                            .snippet(span)
                            .lines()
                            .next()
                            .map_or(1, |l| l.chars().count())
                            .clamp(1, left.max(1));
                        let _ = writeln!(out, "{pad}{}", "^".repeat(width));
                    }
                }
                None => {
                    let _ = writeln!(out, "{word}: {}", d.message);
                }
            }
            if let Some(hint) = &d.hint {
                let _ = writeln!(out, "  hint: {hint}");
            }
        }
        out
    }
}
