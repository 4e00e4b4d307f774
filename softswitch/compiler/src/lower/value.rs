// SPDX-License-Identifier: Apache-2.0
//! Values of expressions: trees whose leaves are scalar expressions or places in storage.

use num_bigint::BigInt;

use super::Lower;
use crate::ast::{CompositeKind, DeclKind, Name, NodeId};
use crate::ir::{Ex, HeaderRef, Scalar};
use crate::types::Type;

#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    Scalar(Ex),
    /// A number of any size, at compile time.
    Int(BigInt),
    Str(String),
    Struct(Vec<(Name, Val)>),
    Tuple(Vec<Val>),
    Header(Header),
    /// A header that is written out, not stored.
    HeaderLit {
        valid: Ex,
        fields: Vec<(Name, Val)>,
    },
    Stack(Stack),
    Union(Union),
    UnionStack(UnionStack),
    /// Index of an extern instance.
    Object(usize),
    /// Index of an instance of a control or parser.
    Block(usize),
    /// Tables and actions, by declaration; they live in the frame that declares them.
    Table(NodeId),
    ValueSet(usize),
    /// An instance of a package, with its arguments, and its declaration if it has one.
    Package {
        args: Vec<Val>,
        decl: Option<NodeId>,
    },
    /// `_`
    Ignore,
    /// Nothing: result of void calls, packets.
    Unit,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub at: HeaderRef,
    pub fields: Vec<(Name, Val)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    pub name: String,
    pub elem: Type,
    pub size: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Union {
    /// Set if the union is a named instance.
    pub name: Option<String>,
    pub members: Vec<(Name, Val)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct UnionStack {
    pub name: String,
    pub elem: Type,
    pub size: u32,
}

impl Val {
    pub fn member(&self, name: &str) -> Option<Val> {
        let fields = match self {
            Val::Struct(f) => f,
            Val::Header(h) => &h.fields,
            Val::HeaderLit { fields, .. } => fields,
            Val::Union(u) => &u.members,
            _ => return None,
        };
        fields
            .iter()
            .find(|(n, _)| &**n == name)
            .map(|(_, v)| v.clone())
    }

    /// Calls `f` on every scalar leaf.
    pub fn leaves(&self, f: &mut dyn FnMut(&Ex)) {
        match self {
            Val::Scalar(e) => f(e),
            Val::Struct(fields) => fields.iter().for_each(|(_, v)| v.leaves(f)),
            Val::Header(h) => {
                f(&Ex::Valid(h.at.clone()));
                h.fields.iter().for_each(|(_, v)| v.leaves(f));
            }
            Val::HeaderLit { valid, fields } => {
                f(valid);
                fields.iter().for_each(|(_, v)| v.leaves(f));
            }
            Val::Union(u) => u.members.iter().for_each(|(_, v)| v.leaves(f)),
            Val::Tuple(items) => items.iter().for_each(|v| v.leaves(f)),
            _ => {}
        }
    }

    /// Whether nothing in it depends on storage.
    pub fn is_const(&self) -> bool {
        match self {
            Val::Stack(_) | Val::UnionStack(_) | Val::Header(_) | Val::Union(_) => false,
            _ => {
                let mut all = true;
                self.leaves(&mut |e| all &= e.is_const() || matches!(e, Ex::Param(..)));
                all
            }
        }
    }
}

impl<'a> Lower<'a> {
    /// Declared fields of a struct, header or union, with type arguments filled in.
    pub(super) fn fields_of(&self, ty: &Type) -> Option<Vec<(Name, Type)>> {
        let fields = self.t.fields(ty)?;
        Some(
            fields
                .into_iter()
                .map(|(name, ty)| (name, self.subst(&ty)))
                .collect(),
        )
    }

    pub(super) fn kind_of(&self, ty: &Type) -> Option<CompositeKind> {
        self.t.composite_kind(ty)
    }

    /// The scalar that a type is stored as, if it is one.
    pub(super) fn scalar_of(&self, ty: &Type) -> Option<Scalar> {
        match ty {
            Type::Bool => Some(Scalar::Bool),
            Type::Bit(w) => Some(Scalar::Bit(*w)),
            Type::SInt(w) => Some(Scalar::Int(*w)),
            Type::Varbit(w) => Some(Scalar::Varbit(*w)),
            Type::Error => Some(Scalar::Bit(32)),
            // Only compile-time code leaves numbers untyped.
            Type::Int => Some(Scalar::Int(64)),
            Type::Named(id, _) => match &self.t.defs.get_decl(*id)?.kind {
                DeclKind::Enum {
                    underlying: None, ..
                } => Some(Scalar::Bit(32)),
                DeclKind::Enum {
                    underlying: Some(t),
                    ..
                }
                | DeclKind::NewType(t) => self.scalar_of(&self.type_of(t.id)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value of every field of a fresh value of type `ty`: zero, invalid.
    pub(super) fn default_value(&self, ty: &Type) -> Val {
        if let Some(s) = self.scalar_of(ty) {
            return Val::Scalar(Ex::Const(0.into(), s));
        }
        match ty {
            Type::Tuple(items) => Val::Tuple(items.iter().map(|t| self.default_value(t)).collect()),
            Type::Stack(elem, n) => Val::Tuple((0..*n).map(|_| self.default_value(elem)).collect()),
            Type::Named(..) => {
                let fields: Vec<(Name, Val)> = self
                    .fields_of(ty)
                    .unwrap_or_default()
                    .into_iter()
                    .map(|(n, t)| (n, self.default_value(&t)))
                    .collect();
                match self.kind_of(ty) {
                    Some(CompositeKind::Header) => Val::HeaderLit {
                        valid: Ex::bool(false),
                        fields,
                    },
                    _ => Val::Struct(fields),
                }
            }
            _ => Val::Unit,
        }
    }
}
