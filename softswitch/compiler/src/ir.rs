// SPDX-License-Identifier: Apache-2.0
//! The lowered program: flat storage, one block of statements per pipeline stage, states and
//! tables. Everything generic, nested, inlined or compile-time is gone.

mod architecture;
mod expr;

use std::borrow::Cow;

use num_bigint::BigInt;

use crate::ast::{Decl, DeclKind, ExprKind, NodeId};
use crate::diag::Span;
use crate::types::Type;

pub use architecture::{Architecture, ObjectKind};
pub use expr::{Ex, HeaderRef, Scalar};

/// Name of the header instance that holds all local variables and user metadata.
pub const SCALARS: &str = "scalars";
pub const STANDARD_METADATA: &str = "standard_metadata";

/// An argument of a primitive operation of the target.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    Ex(Ex),
    Header(HeaderRef),
    /// `type` and `value` as the JSON format names them.
    Named(&'static str, String),
    Str(String),
    Vector(Vec<Ex>),
    FieldList(Vec<Ex>),
}

pub type Label = u32;

#[derive(Clone, Debug)]
pub struct St {
    pub kind: StKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum StKind {
    Assign(Ex, Ex),
    AssignHeader(HeaderRef, HeaderRef),
    AssignStack(String, String),
    AssignUnion(String, String),
    SetValid(HeaderRef, bool),
    /// Push (`true`) or pop.
    Shift {
        stack: String,
        count: u32,
        push: bool,
    },
    If(Ex, Vec<St>, Vec<St>),
    Apply {
        table: usize,
        then: Then,
    },
    /// Statements that `Leave(label)` leaves.
    Labelled(Label, Vec<St>),
    Leave(Label),
    Exit,
    Primitive {
        op: Cow<'static, str>,
        args: Vec<Arg>,
    },
    /// All that a packet does at once with a cell of a register, an object; see [`crate::tofino`].
    Access {
        register: usize,
        /// `None` for `read` and `write` of the register.
        action: Option<RegisterAction>,
        body: Vec<St>,
    },
    Checksum(Checksum),
    /// Runs `head`, then `body` and so on again as long as the condition holds.
    Loop {
        head: Vec<St>,
        cond: Ex,
        body: Vec<St>,
    },
    // Parsers and deparsers only.
    Extract {
        header: HeaderRef,
        var_bits: Option<Ex>,
    },
    Advance(Ex),
    Verify(Ex, Ex),
    Emit(String),
    /// Continue in another state; what follows starts state `resume`.
    RunStates {
        start: usize,
        resume: usize,
    },
}

impl StKind {
    /// Returns the lists of statements inside, in program order.
    pub fn blocks(&self) -> Vec<&[St]> {
        match self {
            Self::If(_, yes, no) => vec![yes, no],
            Self::Labelled(_, body) | Self::Access { body, .. } => vec![body],
            Self::Loop { head, body, .. } => vec![head, body],
            Self::Apply { then, .. } => match then {
                Then::Nothing => Vec::new(),
                Then::HitMiss(hit, miss) => vec![hit, miss],
                Then::Switch { cases, default } => {
                    let cases = cases.iter().map(|(_, body)| &**body);
                    cases.chain([&**default]).collect()
                }
            },
            _ => Vec::new(),
        }
    }

    /// Returns the lists of statements inside, in program order.
    pub fn blocks_mut(&mut self) -> Vec<&mut Vec<St>> {
        match self {
            Self::If(_, yes, no) => vec![yes, no],
            Self::Labelled(_, body) | Self::Access { body, .. } => vec![body],
            Self::Loop { head, body, .. } => vec![head, body],
            Self::Apply { then, .. } => match then {
                Then::Nothing => Vec::new(),
                Then::HitMiss(hit, miss) => vec![hit, miss],
                Then::Switch { cases, default } => {
                    let cases = cases.iter_mut().map(|(_, body)| body);
                    cases.chain([default]).collect()
                }
            },
            _ => Vec::new(),
        }
    }
}

/// A register action that a packet executes.
#[derive(Clone, Debug)]
pub struct RegisterAction {
    /// The instance, an object.
    pub object: usize,
    /// Variables that hold the results, one for each field.
    pub outputs: Vec<Ex>,
    /// True if the action uses a function of the ALU for which P4 has no operator, such as `predicate`, `min8`, queues and
    /// sweeps.
    pub has_special_units: bool,
}

/// The continuation after the application of a table.
#[derive(Clone, Debug)]
pub enum Then {
    Nothing,
    HitMiss(Vec<St>, Vec<St>),
    /// By the action that ran: indices into the table's action list.
    Switch {
        cases: Vec<(Vec<usize>, Vec<St>)>,
        default: Vec<St>,
    },
}

#[derive(Clone, Debug)]
pub struct Checksum {
    pub condition: Ex,
    pub inputs: Vec<Ex>,
    pub payload: bool,
    pub target: Ex,
    pub algorithm: String,
    pub update: bool,
}

#[derive(Clone, Debug)]
pub struct HeaderType {
    pub name: String,
    /// True if its instances are metadata of the architecture.
    pub is_metadata: bool,
    pub fields: Vec<(String, Scalar)>,
}

#[derive(Clone, Debug)]
pub struct HeaderInstance {
    pub name: String,
    pub header_type: usize,
}

#[derive(Clone, Debug)]
pub struct StackInstance {
    pub name: String,
    pub header_type: usize,
    /// Indices of header instances.
    pub elements: Vec<usize>,
}

#[derive(Clone, Debug)]
pub struct UnionType {
    pub name: String,
    /// Member name and header type.
    pub members: Vec<(String, usize)>,
}

#[derive(Clone, Debug)]
pub struct UnionInstance {
    pub name: String,
    pub union_type: usize,
    pub headers: Vec<usize>,
}

#[derive(Clone, Debug)]
pub struct UnionStackInstance {
    pub name: String,
    pub union_type: usize,
    pub unions: Vec<usize>,
}

#[derive(Default)]
pub struct Storage {
    pub scalars: Vec<(String, Scalar)>,
    pub header_types: Vec<HeaderType>,
    pub headers: Vec<HeaderInstance>,
    pub stacks: Vec<StackInstance>,
    pub union_types: Vec<UnionType>,
    pub unions: Vec<UnionInstance>,
    pub union_stacks: Vec<UnionStackInstance>,
}

impl Storage {
    /// Returns true for a header instance that holds variables or the architecture's metadata.
    pub fn is_metadata(&self, header: &str) -> bool {
        let metadata = |h: &HeaderInstance| self.header_types[h.header_type].is_metadata;
        header == SCALARS || self.headers.iter().any(|h| metadata(h) && h.name == header)
    }
}

/// An action with its body, as one table (or several) uses it.
pub struct Action<'a> {
    pub name: String,
    pub params: Vec<(String, Scalar)>,
    pub body: Vec<St>,
    pub decl: &'a Decl,
}

pub struct Key {
    /// Name that the control plane sees.
    pub name: String,
    pub match_kind: String,
    pub target: Ex,
    /// Type as declared, before it was flattened.
    pub ty: Type,
}

#[derive(PartialEq)]
pub enum KeyMatch {
    Exact(BigInt),
    Lpm(BigInt, u32),
    Ternary(BigInt, BigInt),
    Range(BigInt, BigInt),
}

pub struct Entry {
    pub matches: Vec<KeyMatch>,
    pub action: usize,
    pub args: Vec<BigInt>,
    /// True if the control plane may not change it.
    pub is_const: bool,
    /// The explicit priority, if any.
    pub priority: Option<BigInt>,
    /// `@priority(n)`: the target's numbering, smallest first.
    pub annotated_priority: Option<BigInt>,
    pub span: Span,
}

pub struct TableAction {
    /// Index of the action.
    pub action: usize,
    pub decl: NodeId,
}

pub struct DefaultEntry {
    /// Index into the table's action list.
    pub action: usize,
    pub args: Vec<BigInt>,
    pub is_const: bool,
}

pub struct Table<'a> {
    pub name: String,
    pub decl: &'a Decl,
    /// Index of the pipeline that declares it.
    pub pipeline: usize,
    pub keys: Vec<Key>,
    pub actions: Vec<TableAction>,
    pub default: Option<DefaultEntry>,
    pub entries: Vec<Entry>,
    pub const_entries: bool,
    pub size: u64,
    pub support_timeout: bool,
    /// Objects by index: action profile or selector, direct counter, direct meter.
    pub implementation: Option<usize>,
    pub selector_inputs: Vec<Ex>,
    pub counter: Option<usize>,
    pub meter: Option<usize>,
    /// Other direct objects of TNA: a register, a low-pass filter or random early detection.
    pub attached: Vec<usize>,
}

/// An instance of an extern type.
pub struct Object<'a> {
    pub kind: ObjectKind,
    pub extern_name: String,
    pub name: String,
    /// Compile-time arguments: numbers, or names of enum members.
    pub args: Vec<ObjectArg>,
    /// Names of the constructor's parameters.
    pub params: Vec<String>,
    pub targs: Vec<Type>,
    pub annos: &'a [crate::ast::Annotation],
    pub span: Span,
    /// The field for a direct meter's colour.
    pub meter_target: Option<Ex>,
    /// The cells of a register, one array for each field.
    pub cells: Vec<RegisterCells>,
}

/// The array of a register, or of one field of its structs.
#[derive(Clone, Debug)]
pub struct RegisterCells {
    pub name: String,
    pub ty: Scalar,
    /// The value of each cell at start.
    pub initial: BigInt,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ObjectArg {
    Int(BigInt),
    Enum(String),
    /// The numbers in a struct or a tuple.
    List(Vec<BigInt>),
    /// Index of another instance.
    Object(usize),
    Other,
}

impl Table<'_> {
    /// Returns true if the object has one element for each of the table's entries.
    pub fn has_direct(&self, object: usize) -> bool {
        [self.counter, self.meter].contains(&Some(object)) || self.attached.contains(&object)
    }
}

impl Object<'_> {
    /// Returns the constructor's argument for the parameter with this name.
    pub fn argument(&self, parameter: &str) -> Option<&ObjectArg> {
        let i = self.params.iter().position(|p| p == parameter)?;
        self.args.get(i)
    }

    /// Returns the number among the constructor's arguments for the parameter with this name.
    pub fn number(&self, parameter: &str) -> Option<&BigInt> {
        match self.argument(parameter) {
            Some(ObjectArg::Int(n)) => Some(n),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub enum KeySet {
    Any,
    Value(BigInt),
    Mask(BigInt, BigInt),
    Range(BigInt, BigInt),
    /// Name of a value set.
    Set(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    State(usize),
    Accept,
    Reject,
}

#[derive(Clone, Debug)]
pub struct ParserState {
    pub name: String,
    pub ops: Vec<St>,
    pub keys: Vec<Ex>,
    pub cases: Vec<StateCase>,
    pub span: Span,
}

/// A transition of a parser state.
#[derive(Clone, Debug)]
pub struct StateCase {
    /// The keys must match these sets; empty for a direct transition.
    pub sets: Vec<KeySet>,
    pub target: Target,
    pub span: Span,
}

pub struct ValueSet<'a> {
    pub name: String,
    pub size: BigInt,
    pub ty: Type,
    pub fields: Vec<(String, Scalar)>,
    pub decl: &'a Decl,
}

pub struct FieldList {
    pub id: u32,
    pub name: String,
    pub elements: Vec<Ex>,
}

pub struct Digest {
    pub id: u32,
    pub name: String,
    pub elements: Vec<Ex>,
    pub ty: Type,
    pub span: Span,
}

pub struct Calculation {
    pub name: String,
    pub algorithm: String,
    pub inputs: Vec<Ex>,
    pub payload: bool,
}

/// An action that the control plane sees.
pub struct VisibleAction<'a> {
    pub name: String,
    pub decl: &'a Decl,
    /// True if a table lists it; otherwise the control plane cannot set its parameters.
    pub in_table: bool,
}

#[derive(Default)]
pub struct Lowered<'a> {
    pub architecture: Architecture,
    /// The objects visible to the control plane, in program order: actions, and indices of the others.
    pub visible_actions: Vec<VisibleAction<'a>>,
    pub visible_tables: Vec<usize>,
    pub visible_objects: Vec<usize>,
    pub visible_value_sets: Vec<usize>,
    pub storage: Storage,
    pub parsers: Vec<Parser>,
    pub states: Vec<ParserState>,
    pub value_sets: Vec<ValueSet<'a>>,
    pub tables: Vec<Table<'a>>,
    pub actions: Vec<Action<'a>>,
    pub objects: Vec<Object<'a>>,
    pub field_lists: Vec<FieldList>,
    pub digests: Vec<Digest>,
    pub calculations: Vec<Calculation>,
    pub verify: Vec<St>,
    /// The match-action pipelines, in the order in which packets pass them.
    pub pipelines: Vec<Block>,
    pub update: Vec<St>,
    pub deparsers: Vec<Block>,
    pub errors: Vec<String>,
    /// Enumerations of the architecture, with their members.
    pub enums: Vec<(String, Vec<String>)>,
    /// The target's names for fields of the standard metadata, `@alias`, with the fields.
    pub aliases: Vec<(String, String)>,
    /// Widths of declared scalar types (enums, `type`) that registers hold.
    pub named_widths: std::collections::HashMap<NodeId, u32>,
    /// Values of the members of serialisable enums.
    pub enum_values: std::collections::HashMap<NodeId, BigInt>,
    /// True if P4Info must have a `type_info`, even an empty one.
    pub has_type_info: bool,
    /// The name of each pipe's pipeline, if a program for Tofino has several: objects' names begin with it.
    pub pipes: Vec<String>,
    /// The instance `main`.
    pub package: Option<&'a Decl>,
    /// The metadata of ports that TNA's ingress parsers receive.
    pub port_metadata: Vec<PortMetadata>,
    /// The calls of hashes of TNA.
    pub hash_calls: Vec<HashCall>,
}

/// The call of a hash of TNA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashCall {
    /// The call in the program, which may be lowered several times.
    pub call: NodeId,
    /// The hash.
    pub object: usize,
    /// The fields of a list; none for other inputs.
    pub fields: Vec<HashField>,
    /// Width of the result.
    pub width: u32,
    /// Number of low bits of the result that the program uses.
    pub used: u32,
}

/// A field in the input of a hash of TNA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashField {
    /// Its text in the program.
    pub name: String,
    pub width: u32,
    pub is_constant: bool,
}

/// The metadata of ports in front of the packets that an ingress parser of TNA receives.
pub struct PortMetadata {
    /// The name of the parser.
    pub parser: String,
    /// The name of the parser's parameter for intrinsic metadata.
    pub intrinsic: String,
    /// Number of bits that the control plane sets.
    pub bits: u32,
    /// The type as which the parser reads them; none if it reads them in other ways.
    pub ty: Option<Type>,
    /// The fields of this type.
    pub fields: Vec<(String, Scalar)>,
}

/// A parser of the package.
pub struct Parser {
    /// The target's name for it.
    pub name: String,
    pub start_state: usize,
}

impl Lowered<'_> {
    /// Returns the object that names an action profile or selector for the control plane: the object itself, or the
    /// separate profile of a selector of TNA.
    pub fn listed_profile(&self, object: usize) -> usize {
        self.separate_profile(object).unwrap_or(object)
    }

    /// Returns the action profile of a selector of TNA, unless something else uses the profile, too.
    fn separate_profile(&self, selector: usize) -> Option<usize> {
        let profile_of = |o: &Object| match o.argument("action_profile") {
            Some(ObjectArg::Object(profile)) => Some(*profile),
            _ => None,
        };
        let profile = profile_of(&self.objects[selector])?;
        let selectors = self
            .objects
            .iter()
            .filter(|o| profile_of(o) == Some(profile));
        let in_table = |t: &Table| t.implementation == Some(profile);
        (selectors.count() == 1 && !self.tables.iter().any(in_table)).then_some(profile)
    }

    /// Returns the name of the pipe of a program for Tofino, which precedes the names of its tables: the argument of
    /// `Switch(pipe) main`. With several pipelines, the names in P4Info contain it.
    pub fn pipe(&self) -> Option<String> {
        let main = self.package.filter(|_| self.architecture.is_tofino())?;
        if !self.pipes.is_empty() {
            return None;
        }
        let DeclKind::Instance { args, .. } = &main.kind else {
            return None;
        };
        match &args.first()?.expr.kind {
            ExprKind::Name { name, .. } => Some(name.to_string()),
            _ => Some("pipe".to_owned()),
        }
    }
}

/// A pipeline or a deparser of the package.
pub struct Block {
    /// The target's name for it.
    pub name: String,
    pub body: Vec<St>,
    /// Position of its declaration's name.
    pub span: Span,
}
