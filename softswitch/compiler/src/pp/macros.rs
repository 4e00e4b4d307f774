// SPDX-License-Identifier: Apache-2.0
//! Macro definition and expansion.

use std::rc::Rc;

use super::Preprocessor;
use crate::diag::Span;
use crate::token::{Tok, Token, lex};

/// A macro: object-like if `params` is `None`.
#[derive(Clone)]
pub struct Macro {
    params: Option<Vec<Rc<str>>>,
    body: Vec<Token>,
}

impl Macro {
    pub fn object(body: Vec<Token>) -> Macro {
        Macro { params: None, body }
    }

    /// Returns an object-like macro.
    pub(super) fn text(&self) -> Option<String> {
        let words: Vec<String> = self.body.iter().map(|t| spelling(&t.tok)).collect();
        self.params.is_none().then(|| words.join(" "))
    }
}

/// The name of the variadic arguments in a macro's body.
const REST: &str = "__VA_ARGS__";

/// Maximum number of tokens from all macro expansions of a program, against exponential growth.
const MAX_EXPANSION: usize = 1 << 19;

impl Preprocessor<'_> {
    pub(super) fn define(&mut self, rest: &[Token], span: Span) {
        let Some(Token {
            tok: Tok::Ident(name),
            ..
        }) = rest.first()
        else {
            self.diags.error(span, "#define needs a macro name");
            return;
        };
        let mut body = &rest[1..];
        let mut params = None;
        // `(` directly after the name makes it function-like.
        if body
            .first()
            .is_some_and(|t| t.tok == Tok::P("(") && t.glued)
        {
            let Some(close) = body.iter().position(|t| t.tok == Tok::P(")")) else {
                self.diags
                    .error(span, "the macro's parameter list has no closing ')'");
                return;
            };
            let mut names = Vec::new();
            for t in &body[1..close] {
                match &t.tok {
                    Tok::Ident(p) => names.push(p.clone()),
                    Tok::P(",") => {}
                    // The remaining arguments.
                    Tok::P("...") => names.push(REST.into()),
                    _ => self.diags.error(t.span, "a macro parameter must be a name"),
                }
            }
            params = Some(names);
            body = &body[close + 1..];
        }
        self.macros.insert(
            name.clone(),
            Macro {
                params,
                body: body.to_vec(),
            },
        );
    }

    /// Replaces all macro calls in `tokens`.
    pub(super) fn expand(&mut self, tokens: &[Token]) -> Vec<Token> {
        let mut out = Vec::new();
        self.expand_into(tokens, &mut Vec::new(), &mut out);
        out
    }

    fn expand_into(&mut self, tokens: &[Token], hidden: &mut Vec<Rc<str>>, out: &mut Vec<Token>) {
        let mut i = 0;
        while i < tokens.len() {
            let t = &tokens[i];
            if self.expanded > MAX_EXPANSION {
                self.diags.error(t.span, "macro expansion is too large");
                return;
            }
            i += 1;
            let Tok::Ident(name) = &t.tok else {
                out.push(t.clone());
                continue;
            };
            if &**name == "__LINE__" {
                let line = self.sources.line_col(t.span).line;
                out.push(Token {
                    tok: Tok::Int {
                        text: line.to_string().into(),
                        value: line.into(),
                        width: None,
                    },
                    ..t.clone()
                });
                continue;
            }
            if &**name == "__FILE__" {
                let file = self.sources.file(t.span.file).name.as_str().into();
                out.push(Token {
                    tok: Tok::Str(file),
                    ..t.clone()
                });
                continue;
            }
            let Some(mac) = self
                .macros
                .get(name)
                .filter(|_| !hidden.contains(name))
                .cloned()
            else {
                out.push(t.clone());
                continue;
            };
            let body = match &mac.params {
                None => mac.body.clone(),
                Some(params) => {
                    if tokens.get(i).is_none_or(|t| t.tok != Tok::P("(")) {
                        out.push(t.clone()); // a function-like macro's bare name
                        continue;
                    }
                    let Some((mut args, next)) = split_arguments(tokens, i) else {
                        self.diags.error(
                            t.span,
                            format!("the call of macro {name} has no closing ')'"),
                        );
                        return;
                    };
                    i = next;
                    if params.last().is_some_and(|p| &**p == REST) {
                        gather_rest(&mut args, params.len(), t);
                    }
                    let empty_call = params.is_empty() && args.len() == 1 && args[0].is_empty();
                    if args.len() != params.len() && !empty_call {
                        self.diags.error(
                            t.span,
                            format!(
                                "macro {name} takes {} arguments, {} given",
                                params.len(),
                                args.len()
                            ),
                        );
                        continue;
                    }
                    self.substitute(&mac.body, params, &args, hidden)
                }
            };
            let body = paste(body);
            self.expanded += body.len().max(1);
            hidden.push(name.clone());
            let mut expanded = Vec::new();
            self.expand_into(&body, hidden, &mut expanded);
            hidden.pop();
            for (k, mut e) in expanded.into_iter().enumerate() {
                // Messages refer to the use, not to the definition.
                e.span = t.span;
                e.line_start = k == 0 && t.line_start;
                if k == 0 {
                    e.glued = t.glued;
                }
                out.push(e);
            }
        }
    }

    fn substitute(
        &mut self,
        body: &[Token],
        params: &[Rc<str>],
        args: &[Vec<Token>],
        hidden: &mut Vec<Rc<str>>,
    ) -> Vec<Token> {
        let mut out: Vec<Token> = Vec::new();
        for (k, t) in body.iter().enumerate() {
            let index = match &t.tok {
                Tok::Ident(n) => params.iter().position(|p| p == n),
                _ => None,
            };
            let Some(index) = index else {
                out.push(t.clone());
                continue;
            };
            let arg = args.get(index).map_or(&[][..], |a| &a[..]);
            let after_hash = out.last().is_some_and(|p| p.tok == Tok::P("#"));
            let pasted = out.last().is_some_and(|p| p.tok == Tok::P("##"))
                || body.get(k + 1).is_some_and(|n| n.tok == Tok::P("##"));
            if after_hash {
                out.pop();
                let mut text = String::new();
                for a in arg {
                    if !a.glued && !text.is_empty() {
                        text.push(' ');
                    }
                    text.push_str(&spelling(&a.tok).replace('"', "\\\""));
                }
                out.push(Token {
                    tok: Tok::Str(text.into()),
                    ..t.clone()
                });
            } else if pasted {
                out.extend(arg.iter().cloned());
            } else {
                let mut expanded = Vec::new();
                self.expand_into(arg, hidden, &mut expanded);
                if let Some(first) = expanded.first_mut() {
                    first.glued = false;
                }
                out.extend(expanded);
            }
        }
        out
    }
}

/// Splits the arguments of the call whose `(` is `tokens[open]`; returns them and what follows `)`.
fn split_arguments(tokens: &[Token], open: usize) -> Option<(Vec<Vec<Token>>, usize)> {
    let mut args = vec![Vec::new()];
    let mut depth = 0usize;
    for (k, t) in tokens.iter().enumerate().skip(open) {
        match t.tok {
            Tok::P("(") => {
                depth += 1;
                if depth == 1 {
                    continue;
                }
            }
            Tok::P(")") => {
                depth -= 1;
                if depth == 0 {
                    return Some((args, k + 1));
                }
            }
            Tok::P(",") if depth == 1 => {
                args.push(Vec::new());
                continue;
            }
            _ => {}
        }
        args.last_mut()?.push(t.clone());
    }
    None
}

/// Joins the arguments from number `count` on, with their commas; adds an empty one if they are missing.
fn gather_rest(args: &mut Vec<Vec<Token>>, count: usize, call: &Token) {
    if args.len() < count {
        args.push(Vec::new());
    }
    while args.len() > count {
        let more = args.remove(count);
        let rest = &mut args[count - 1];
        rest.push(Token {
            tok: Tok::P(","),
            line_start: false,
            glued: true,
            ..call.clone()
        });
        rest.extend(more);
    }
}

/// Joins the neighbours of every `##`.
fn paste(body: Vec<Token>) -> Vec<Token> {
    if !body.iter().any(|t| t.tok == Tok::P("##")) {
        return body;
    }
    let mut out: Vec<Token> = Vec::new();
    let mut tokens = body.into_iter();
    while let Some(t) = tokens.next() {
        if t.tok != Tok::P("##") {
            out.push(t);
            continue;
        }
        let (Some(left), Some(right)) = (out.pop(), tokens.next()) else {
            break;
        };
        let text = format!("{}{}", spelling(&left.tok), spelling(&right.tok));
        let mut joined = lex(left.span.file, &text);
        joined.pop();
        out.extend(joined.into_iter().map(|j| Token {
            span: left.span,
            glued: left.glued,
            line_start: false,
            ..j
        }));
    }
    out
}

pub(super) fn spelling(tok: &Tok) -> String {
    match tok {
        Tok::Ident(s) => s.to_string(),
        Tok::Int { text, .. } => text.to_string(),
        Tok::P(p) => (*p).to_string(),
        Tok::Str(s) => format!("\"{s}\""),
        Tok::Bad(_) | Tok::Eof => String::new(),
    }
}
