// SPDX-License-Identifier: Apache-2.0
//! The parsers of a gress. With `MultiParserPipeline`, ports have different ones.
//!
//! The chip has several parsers in each gress of a pipe, of which each serves some ports. The annotation
//! `@default_portmap` of `IngressParsers` and `EgressParsers` lists for each parser of the program the numbers of the chip's
//! parsers that run it. Here, one parser begins with a state that chooses by the port.

use num_traits::ToPrimitive;

use super::Lower;
use super::value::Val;
use crate::ast::{Annotation, AnnotationBody, Expr, ExprKind, NodeId};
use crate::ir::{Ex, KeySet, Parser, ParserState, Scalar, StKind, StateCase, Target};

/// Number of gresses of a pipeline.
pub(super) const GRESSES: usize = 2;

const PORTMAP: &str = "default_portmap";

/// Position and width of a port's number within its pipe, in the intrinsic header of both gresses.
const PORT_OFFSET: u32 = 9;
const PORT_WIDTH: u32 = 7;

/// A parser of a gress.
pub(super) struct PortParser {
    pub block: usize,
    /// The name of its port metadata for the control plane.
    pub name: String,
    /// The numbers of the chip's parsers that run it; `None` for all.
    runs_on: Option<Vec<u32>>,
}

impl<'a> Lower<'a> {
    /// Returns the parsers of a gress: those of `IngressParsers` or `EgressParsers`, or a single one. `None` if there is no
    /// parser.
    pub(super) fn port_parsers(&self, value: &Val) -> Option<Vec<PortParser>> {
        let (values, decl) = match value {
            Val::Package { args, decl } => (args.as_slice(), *decl),
            single => (std::slice::from_ref(single), None),
        };
        let mut maps = self.portmap(decl).into_iter();
        // The names of blocks in a package end with their type, after the name of the parameter.
        let name = |block: usize| match (&*self.blocks[block].name, decl) {
            (name, Some(_)) => name
                .rsplit_once('.')
                .map_or(name, |(parameter, _)| parameter),
            (name, None) => name,
        };
        let parsers = values.iter().filter_map(|value| match value {
            Val::Block(block) => Some(PortParser {
                block: *block,
                name: name(*block).to_owned(),
                runs_on: maps.next(),
            }),
            _ => None,
        });
        let parsers: Vec<PortParser> = parsers.collect();
        (!parsers.is_empty()).then_some(parsers)
    }

    /// Returns the numbers in the annotation of a declaration.
    fn portmap(&self, decl: Option<NodeId>) -> Vec<Vec<u32>> {
        let decl = decl.and_then(|id| self.t.program.decls.iter().find(|d| d.id == id));
        let Some(annotation) = decl.and_then(|d| crate::annotation::find(&d.annos, PORTMAP)) else {
            return Vec::new();
        };
        let found = portmap(annotation);
        if found.is_none() {
            self.diags.error_hint(
                annotation.span,
                format!("invalid @{PORTMAP}"),
                format!("list numbers for each parser: @{PORTMAP}({{0, 1}}, {{2, 3}})"),
            );
        }
        found.unwrap_or_default()
    }

    /// Lowers the parsers of a gress as one, which the target calls `name`.
    pub(super) fn gress_parsers(&mut self, name: &str, parsers: &[PortParser], first: &[Val]) {
        self.first_state = self.ir.states.len();
        let mut starts = Vec::new();
        for parser in parsers {
            let values = self.block_values(parser.block, first);
            if self.pipeline.is_multiple_of(GRESSES) {
                self.describe_port_metadata(parser);
            }
            self.bind_top(parser.block, &values);
            let prefix = match parsers {
                [_] => String::new(),
                _ => self.blocks[parser.block].name.clone(),
            };
            starts.push(self.parser_states(parser.block, &prefix, Target::Accept));
        }
        let start_state = match (parsers, starts.as_slice()) {
            ([PortParser { runs_on: None, .. }], [start]) => *start,
            _ => self.choice_of_parser(parsers, &starts),
        };
        let name = name.to_owned();
        self.ir.parsers.push(Parser { name, start_state });
    }

    /// Adds the state that continues with the parser of the port. Other ports do not have a parser.
    fn choice_of_parser(&mut self, parsers: &[PortParser], starts: &[usize]) -> usize {
        let width = PORT_WIDTH - self.ports_of_parser().ilog2();
        let ty = Scalar::Bit(width);
        let number = self.temp(ty);
        let ahead = Ex::Lookahead {
            offset: PORT_OFFSET,
            width,
            ty,
        };
        let ops = self.collect(|s| s.emit(StKind::Assign(number.clone(), ahead)));
        let span = self.span;
        let case = |set, target| StateCase {
            sets: vec![set],
            target,
            span,
        };
        let mut cases = Vec::new();
        for (parser, start) in parsers.iter().zip(starts) {
            let target = Target::State(*start);
            match &parser.runs_on {
                Some(numbers) => {
                    let sets = numbers.iter().map(|n| KeySet::Value((*n).into()));
                    cases.extend(sets.map(|set| case(set, target)));
                }
                None => cases.push(case(KeySet::Any, target)),
            }
        }
        cases.push(case(KeySet::Any, Target::Reject));
        self.ir.states.push(ParserState {
            name: self.unique_state("port"),
            ops,
            keys: vec![number],
            cases,
            span,
        });
        self.ir.states.len() - 1
    }

    /// Returns the number of ports that each of the chip's parsers serves.
    fn ports_of_parser(&mut self) -> u32 {
        match self.port_metadata_bits() {
            64 => 4,
            _ => 8,
        }
    }
}

/// Returns the numbers in an annotation, for each parser; `None` if it contains something else.
fn portmap(annotation: &Annotation) -> Option<Vec<Vec<u32>>> {
    let AnnotationBody::Tokens { exprs, .. } = &annotation.body else {
        return None;
    };
    let number = |e: &Expr| match &e.kind {
        ExprKind::Int { value, .. } => value.to_u32(),
        _ => None,
    };
    let numbers = |e: &Expr| match &e.kind {
        ExprKind::List { items, dots: false } => items.iter().map(number).collect(),
        _ => Some(vec![number(e)?]),
    };
    exprs.iter().map(numbers).collect()
}
