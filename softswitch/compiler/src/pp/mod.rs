// SPDX-License-Identifier: Apache-2.0
//! A C-style preprocessor on tokens, so that every token keeps its source position.

mod builtin;
mod cond;
mod macros;
mod multiline;
mod print;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::Options;
use crate::diag::{Diagnostics, SourceMap, Span, Warning};
use crate::near::{did_you_mean, nearest};
use crate::token::{Tok, Token, lex};

pub use macros::Macro;
pub use print::print;

/// Maximum nesting depth of includes; deeper nesting means a cycle.
const MAX_INCLUDE_DEPTH: usize = 100;

const DIRECTIVES: [&str; 13] = [
    "include", "import", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif",
    "error", "warning", "pragma",
];

/// Runs the preprocessor over `main_file`; returns its tokens, `Eof` last.
pub fn preprocess(
    sources: &SourceMap,
    diags: &Diagnostics,
    main_file: u32,
    options: &Options,
) -> Vec<Token> {
    let mut pp = Preprocessor {
        sources,
        diags,
        include_dirs: &options.include_dirs,
        macros: HashMap::new(),
        out: Vec::new(),
        depth: 0,
        included: HashSet::new(),
        expanded: 0,
    };
    let architecture = options.architecture.as_deref();
    if let Some((name, value)) = architecture.and_then(builtin::macro_of) {
        pp.predefine(name, value);
    }
    for (name, value) in &options.defines {
        match value {
            Some(value) => pp.predefine(name, value),
            None => {
                pp.macros.remove(name.as_str());
            }
        }
    }
    pp.file(main_file);
    // A missing end is reported on the last non-empty line.
    let end = sources.file(main_file).text.trim_end().len() as u32;
    pp.out.push(Token {
        tok: Tok::Eof,
        span: Span {
            file: main_file,
            lo: end,
            hi: end,
        },
        line_start: true,
        glued: false,
    });
    pp.out
}

pub(crate) struct Preprocessor<'a> {
    sources: &'a SourceMap,
    diags: &'a Diagnostics,
    include_dirs: &'a [PathBuf],
    macros: HashMap<Rc<str>, Macro>,
    out: Vec<Token>,
    depth: usize,
    /// Paths of the included files.
    included: HashSet<String>,
    /// Number of tokens from macro expansions.
    expanded: usize,
}

/// State of one `#if` ... `#endif`.
struct Branch {
    span: Span,
    /// True if tokens are copied.
    active: bool,
    /// True if a branch was taken, so that later ones are not.
    taken: bool,
    /// True if the text around the conditional is copied.
    outer: bool,
    seen_else: bool,
}

impl Preprocessor<'_> {
    /// Defines a macro that does not come from a file.
    fn predefine(&mut self, name: &str, value: &str) {
        let file = self.sources.add("<command line>".into(), value.into());
        let mut body = lex(file, value);
        body.pop();
        self.macros.insert(name.into(), Macro::object(body));
    }

    fn file(&mut self, file: u32) {
        let text = self.sources.file(file).text.clone();
        let tokens = lex(file, &text);
        let mut branches: Vec<Branch> = Vec::new();
        let mut i = 0;
        while tokens[i].tok != Tok::Eof {
            let line_end = (i + 1..tokens.len())
                .find(|j| tokens[*j].line_start)
                .unwrap_or(tokens.len() - 1);
            if tokens[i].line_start && tokens[i].tok == Tok::P("#") {
                self.directive(&tokens[i..line_end], &mut branches);
                i = line_end;
                continue;
            }
            if branches.last().is_none_or(|b| b.active) {
                // Macro calls may span lines, so expand up to the next directive at once.
                let mut end = line_end;
                while tokens[end].tok != Tok::Eof && tokens[end].tok != Tok::P("#") {
                    end = (end + 1..tokens.len())
                        .find(|j| tokens[*j].line_start)
                        .unwrap_or(tokens.len() - 1);
                }
                let joined = self.multi_line_strings(&tokens[i..end]);
                let expanded = self.expand(&joined);
                self.out.extend(expanded);
                i = end;
            } else {
                i = line_end;
            }
        }
        if let Some(open) = branches.last() {
            self.diags.error_hint(
                open.span,
                "conditional without #endif",
                "add the missing #endif",
            );
        }
    }

    fn directive(&mut self, line: &[Token], branches: &mut Vec<Branch>) {
        // Like p4c, treat other lines as comments or line markers.
        let Some(Tok::Ident(word)) = line.get(1).map(|t| &t.tok) else {
            return;
        };
        let span = line[0].span.to(line[1].span);
        let active = branches.last().is_none_or(|b| b.active);
        let rest = &line[2..];
        match &**word {
            "if" | "ifdef" | "ifndef" => {
                let value = active
                    && match &**word {
                        "if" => self.condition(rest, span),
                        "ifdef" => self.is_defined(rest, span),
                        _ => !self.is_defined(rest, span),
                    };
                branches.push(Branch {
                    span,
                    active: value,
                    taken: value,
                    outer: active,
                    seen_else: false,
                });
            }
            "elif" | "else" => {
                let is_else = &**word == "else";
                let Some(mut b) = branches.pop() else {
                    self.diags.error(span, format!("#{word} without #if"));
                    return;
                };
                if b.seen_else {
                    self.diags.error(span, format!("#{word} after #else"));
                }
                let value = b.outer && !b.taken && (is_else || self.condition(rest, span));
                b.active = value;
                b.taken |= value;
                b.seen_else |= is_else;
                branches.push(b);
            }
            "endif" => {
                if branches.pop().is_none() {
                    self.diags.error(span, "#endif without #if");
                }
            }
            _ if !active => {}
            "define" => self.define(rest, span),
            "undef" => match rest.first().map(|t| &t.tok) {
                Some(Tok::Ident(name)) => {
                    self.macros.remove(name);
                }
                _ => self.diags.error(span, "#undef needs a macro name"),
            },
            "include" => self.include(rest, span, false),
            "import" => self.include(rest, span, true),
            "error" | "warning" => {
                let whole = line[line.len() - 1].span;
                let text = self.sources.snippet(
                    Span {
                        lo: span.hi,
                        ..span
                    }
                    .to(whole),
                );
                let text = text.trim();
                if &**word == "error" {
                    self.diags.error(span, format!("#error {text}"));
                } else {
                    self.diags
                        .warn(Warning::Invalid, span, format!("#warning {text}"));
                }
            }
            "pragma" | "line" => {}
            other => self.warn_of_near_directive(other, span),
        }
    }

    /// Warns of a comment that is probably a misspelled directive.
    fn warn_of_near_directive(&self, word: &str, span: Span) {
        if let Some(near) = nearest(word, DIRECTIVES.into_iter()) {
            let message = format!(
                "#{word} is not a directive, but a comment: {}",
                did_you_mean(near)
            );
            self.diags.warn(Warning::Invalid, span, message);
        }
    }

    fn is_defined(&self, rest: &[Token], span: Span) -> bool {
        match rest.first().map(|t| &t.tok) {
            Some(Tok::Ident(name)) => self.macros.contains_key(name),
            _ => {
                self.diags.error(span, "expected a macro name");
                false
            }
        }
    }

    /// Includes a file; with `once`, only if it has not been included.
    fn include(&mut self, rest: &[Token], span: Span, once: bool) {
        let expanded;
        let rest = if matches!(rest.first().map(|t| &t.tok), Some(Tok::Ident(_))) {
            expanded = self.expand(rest);
            &expanded[..]
        } else {
            rest
        };
        let (name, quoted) = match rest.first().map(|t| &t.tok) {
            Some(Tok::Str(s)) => (s.to_string(), true),
            Some(Tok::P("<")) => {
                let from = rest[0].span;
                let Some(close) = rest.iter().find(|t| t.tok == Tok::P(">")) else {
                    self.diags.error(span, "#include <...> has no closing '>'");
                    return;
                };
                let inner = Span {
                    lo: from.hi,
                    hi: close.span.lo,
                    file: from.file,
                };
                (self.sources.snippet(inner).trim().to_string(), false)
            }
            _ => {
                self.diags.error(span, "#include needs \"file\" or <file>");
                return;
            }
        };
        if self.depth >= MAX_INCLUDE_DEPTH {
            self.diags.error_hint(
                span,
                format!("'{name}' is included too deeply"),
                "the files probably include each other: guard them with #ifndef",
            );
            return;
        }
        let here = self.sources.file(span.file).name.clone();
        let whole = rest.iter().fold(span, |s, t| s.to(t.span));
        let Some((path, text)) = self.find_include(&name, quoted, &here, whole) else {
            return;
        };
        let is_new = self.included.insert(path.clone());
        if once && !is_new {
            return;
        }
        let file = self.sources.add(path, text);
        self.depth += 1;
        self.file(file);
        self.depth -= 1;
    }

    fn find_include(
        &self,
        name: &str,
        quoted: bool,
        here: &str,
        span: Span,
    ) -> Option<(String, String)> {
        let mut dirs: Vec<PathBuf> = Vec::new();
        if quoted {
            dirs.push(
                Path::new(here)
                    .parent()
                    .unwrap_or(Path::new(""))
                    .to_path_buf(),
            );
        }
        dirs.extend(self.include_dirs.iter().cloned());
        for dir in &dirs {
            let path = dir.join(name);
            if !path.is_file() {
                continue;
            }
            return match std::fs::read(&path) {
                Ok(bytes) => Some((
                    path.display().to_string(),
                    String::from_utf8_lossy(&bytes).into_owned(),
                )),
                Err(e) => {
                    self.diags
                        .error(span, format!("cannot read {}: {e}", path.display()));
                    None
                }
            };
        }
        if let Some(text) = builtin::file(name) {
            return Some((name.into(), text.into()));
        }
        let looked: Vec<String> = dirs
            .iter()
            .map(|d| {
                if d.as_os_str().is_empty() {
                    ".".into()
                } else {
                    d.display().to_string()
                }
            })
            .collect();
        self.diags.error_hint(
            span,
            format!("cannot find the included file '{name}'"),
            format!(
                "looked in: {}; add its folder with -I (built in are core.p4, v1model.p4, psa.p4, tna.p4 and t2na.p4)",
                if looked.is_empty() {
                    "nowhere".into()
                } else {
                    looked.join(", ")
                }
            ),
        );
        None
    }
}
