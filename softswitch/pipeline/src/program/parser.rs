// SPDX-License-Identifier: Apache-2.0
//! The parser: a state machine over the frame.

use std::collections::BTreeSet;

use super::expr::{Cond, DynField, Node};
use super::key_part::KeyPart;
use super::layout::HeaderId;
use super::op::{Op, Target};

/// The end of parsing.
pub(crate) const ACCEPT: u32 = u32::MAX;

/// Codes of the core library's errors.
#[derive(Debug, Clone, Default)]
pub(crate) struct ErrorCodes {
    pub(crate) no_error: u64,
    pub(crate) packet_too_short: u64,
    pub(crate) stack_out_of_bounds: u64,
    pub(crate) header_too_short: u64,
    pub(crate) parser_timeout: u64,
    pub(crate) invalid_argument: u64,
    pub(crate) no_match: u64,
}

/// The header that an extraction fills.
#[derive(Debug, Clone)]
pub(crate) enum Destination {
    Header(HeaderId),
    /// The next element of a stack.
    Stack(u32),
    /// A member of the next element of a stack of unions.
    UnionStack(u32, u32),
}

/// One step of a state.
#[derive(Debug, Clone)]
pub(crate) enum ParserOp {
    /// A header of fixed length.
    Extract(HeaderId),
    /// Any other extraction, with the length in bits of the variable-length field.
    ExtractTo(Destination, Option<Node<u64>>),
    /// A lookahead: offset and width in bits.
    Lookahead {
        to: Target,
        offset: u32,
        width: u32,
    },
    /// `verify`: the condition, and the error if it does not hold.
    Verify(Cond, Node<u64>),
    /// `advance`: the number of bits to skip.
    Advance(Node<u64>),
    Run(Vec<Op>),
}

/// One part of a `select` key.
#[derive(Debug, Clone)]
pub(crate) enum SelectPart {
    Field(KeyPart),
    Dyn {
        field: DynField,
        word: usize,
        shift: u32,
    },
    Lookahead {
        offset: u32,
        width: u32,
        word: usize,
        shift: u32,
    },
}

/// One case of a `select`.
#[derive(Debug, Clone)]
pub(crate) enum Case {
    /// `key & mask == value` for a key of one word.
    Word {
        value: u64,
        mask: u64,
        next: u32,
    },
    Words {
        values: Vec<u64>,
        masks: Vec<u64>,
        next: u32,
    },
    ValueSet {
        set: u32,
        next: u32,
    },
}

impl Case {
    /// Returns the next state.
    pub(crate) fn next(&self) -> u32 {
        match self {
            Self::Word { next, .. } | Self::Words { next, .. } | Self::ValueSet { next, .. } => {
                *next
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ParserState {
    pub(crate) name: String,
    pub(crate) ops: Vec<ParserOp>,
    pub(crate) key: Vec<SelectPart>,
    pub(crate) words: usize,
    pub(crate) cases: Vec<Case>,
    pub(crate) default: u32,
}

impl ParserState {
    /// Returns the next state of a case; the default transition has the number after the last case.
    pub(crate) fn next(&self, case: usize) -> u32 {
        self.cases.get(case).map_or(self.default, Case::next)
    }

    /// Returns all next states.
    fn successors(&self) -> impl Iterator<Item = u32> {
        self.cases.iter().map(Case::next).chain([self.default])
    }
}

/// The result of a parser.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parsed {
    /// The error code.
    pub(crate) error: u64,
    /// True if the verification found a wrong checksum.
    pub(crate) bad_checksum: bool,
}

/// The states of all of an architecture's parsers.
#[derive(Debug, Clone)]
pub(crate) struct Parser {
    pub(crate) states: Vec<ParserState>,
    /// The first state of each parser, in the architecture's order.
    pub(crate) starts: Vec<u32>,
    pub(crate) errors: ErrorCodes,
}

impl Parser {
    /// Returns the states that a parser can reach.
    pub(crate) fn reachable(&self, parser: usize) -> BTreeSet<u32> {
        let mut reached = BTreeSet::new();
        let mut next = vec![self.starts[parser]];
        while let Some(number) = next.pop() {
            if let Some(state) = self.states.get(number as usize)
                && reached.insert(number)
            {
                next.extend(state.successors());
            }
        }
        reached
    }

    /// Returns true if a parser begins with the extraction of a header, and never returns to its first state.
    pub(crate) fn begins_with(&self, parser: usize, header: HeaderId) -> bool {
        let start = self.starts[parser];
        let state = |number: u32| self.states.get(number as usize);
        let first = state(start).and_then(|state| state.ops.first());
        let mut reachable = self.reachable(parser).into_iter().filter_map(state);
        matches!(first, Some(ParserOp::Extract(id)) if *id == header)
            && !reachable.any(|state| state.successors().any(|next| next == start))
    }
}
