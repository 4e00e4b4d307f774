// SPDX-License-Identifier: Apache-2.0
//! Allocation of variables: structs are taken apart down to scalars, headers and stacks.

use super::Lower;
use super::value::{Header, Stack, Union, UnionStack, Val};
use crate::ast::{CompositeKind, Name};
use crate::ir::{
    Ex, HeaderInstance, HeaderRef, HeaderType, SCALARS, Scalar, StackInstance, UnionInstance,
    UnionStackInstance, UnionType,
};
use crate::types::Type;

/// A bound on all storage, against structs that contain each other many times over.
const MAX_VARIABLES: usize = 1 << 20;

impl<'a> Lower<'a> {
    /// Returns true if more storage is allowed; reports one error if not.
    fn has_room(&mut self) -> bool {
        if self.names.len() < MAX_VARIABLES {
            return true;
        }
        if !self.diags.has_errors() {
            self.error(self.span, "the program has too many variables and headers");
        }
        false
    }

    fn unique(&mut self, base: &str) -> String {
        let mut name = base.to_string();
        let mut n = 0;
        while !self.names.insert(name.clone()) {
            name = format!("{base}_{n}");
            n += 1;
        }
        name
    }

    pub(super) fn scalar_variable(&mut self, name: &str, ty: Scalar) -> Ex {
        if let Scalar::Varbit(w) = ty {
            return self.varbit_variable(name, w);
        }
        let field = self.unique(name);
        self.ir.storage.scalars.push((field.clone(), ty));
        Ex::Field {
            header: SCALARS.into(),
            field,
            ty,
        }
    }

    /// Only headers can hold a field of variable length, so each such variable is one.
    fn varbit_variable(&mut self, name: &str, width: u32) -> Ex {
        let ty = Scalar::Varbit(width);
        let type_name = format!("$varbit{width}");
        let header_type = match self.header_types.get(&type_name) {
            Some(i) => *i,
            None => {
                let fields = vec![("field".to_string(), ty)];
                self.ir.storage.header_types.push(HeaderType {
                    name: type_name.clone(),
                    is_metadata: false,
                    fields,
                });
                let i = self.ir.storage.header_types.len() - 1;
                self.header_types.insert(type_name, i);
                i
            }
        };
        let header = self.unique(name);
        self.ir.storage.headers.push(HeaderInstance {
            name: header.clone(),
            header_type,
        });
        Ex::Field {
            header,
            field: "field".into(),
            ty,
        }
    }

    /// Storage for a value of type `ty`, named after `name`.
    pub(super) fn allocate(&mut self, ty: &Type, name: &str) -> Val {
        if !self.has_room() {
            return Val::Unit;
        }
        if let Some(s) = self.scalar_of(ty) {
            return Val::Scalar(self.scalar_variable(name, s));
        }
        let dot = |n: &str| {
            if name.is_empty() {
                n.to_string()
            } else {
                format!("{name}.{n}")
            }
        };
        match ty {
            Type::Tuple(items) => Val::Tuple(
                items
                    .iter()
                    .enumerate()
                    .map(|(i, t)| self.allocate(t, &dot(&i.to_string())))
                    .collect(),
            ),
            Type::Stack(elem, n) => self.allocate_stack(elem, *n, name),
            Type::Named(..) => match self.kind_of(ty) {
                Some(CompositeKind::Header) => {
                    let header = self.allocate_header(ty, name);
                    let name = self.ir.storage.headers[header].name.clone();
                    self.header_at(ty, HeaderRef::Static(name))
                }
                Some(CompositeKind::Union) => {
                    let union = self.allocate_union(ty, name);
                    self.union_instance(ty, union)
                }
                Some(CompositeKind::Struct) => {
                    let fields = self.fields_of(ty).unwrap_or_default();
                    Val::Struct(
                        fields
                            .into_iter()
                            .map(|(n, t)| {
                                let v = self.allocate(&t, &dot(&n));
                                (n, v)
                            })
                            .collect(),
                    )
                }
                None => Val::Unit,
            },
            _ => Val::Unit,
        }
    }

    fn allocate_header(&mut self, ty: &Type, name: &str) -> usize {
        let header_type = self.header_type(ty);
        let name = self.unique(name);
        self.ir
            .storage
            .headers
            .push(HeaderInstance { name, header_type });
        self.ir.storage.headers.len() - 1
    }

    fn allocate_stack(&mut self, elem: &Type, n: u32, name: &str) -> Val {
        let name = self.unique(name);
        if self.kind_of(elem) == Some(CompositeKind::Union) {
            let unions: Vec<usize> = (0..n)
                .map(|i| self.allocate_union(elem, &format!("{name}[{i}]")))
                .collect();
            let union_type = self.union_type(elem);
            self.ir.storage.union_stacks.push(UnionStackInstance {
                name: name.clone(),
                union_type,
                unions,
            });
            return Val::UnionStack(UnionStack {
                name,
                elem: elem.clone(),
                size: n,
            });
        }
        let elements = (0..n)
            .map(|i| self.allocate_header(elem, &format!("{name}[{i}]")))
            .collect();
        let header_type = self.header_type(elem);
        self.ir.storage.stacks.push(StackInstance {
            name: name.clone(),
            header_type,
            elements,
        });
        Val::Stack(Stack {
            name,
            elem: elem.clone(),
            size: n,
        })
    }

    fn allocate_union(&mut self, ty: &Type, name: &str) -> usize {
        let union_type = self.union_type(ty);
        let name = self.unique(name);
        let headers = self
            .fields_of(ty)
            .unwrap_or_default()
            .iter()
            .map(|(n, t)| self.allocate_header(t, &format!("{name}.{n}")))
            .collect();
        self.ir.storage.unions.push(UnionInstance {
            name,
            union_type,
            headers,
        });
        self.ir.storage.unions.len() - 1
    }

    fn union_instance(&mut self, ty: &Type, union: usize) -> Val {
        let u = self.ir.storage.unions[union].clone();
        let members = self
            .fields_of(ty)
            .unwrap_or_default()
            .into_iter()
            .zip(&u.headers)
            .map(|((n, t), h)| {
                let at = HeaderRef::Static(self.ir.storage.headers[*h].name.clone());
                (n, self.header_at(&t, at))
            })
            .collect();
        Val::Union(Union {
            name: Some(u.name),
            members,
        })
    }

    /// The name that JSON gives to a declared type with its arguments.
    pub(super) fn type_name(&self, ty: &Type) -> String {
        match ty {
            Type::Named(id, args) => {
                let base = self.t.defs.get_decl(*id);
                let base = base.map_or_else(String::new, |d| d.name.name.to_string());
                base + &Type::arguments_suffix(args, &self.t.defs)
            }
            _ => ty.show(&self.t.defs),
        }
    }

    fn header_type(&mut self, ty: &Type) -> usize {
        let name = self.type_name(ty);
        if let Some(i) = self.header_types.get(&name) {
            return *i;
        }
        let mut fields = Vec::new();
        self.flat_fields(ty, "", &mut fields);
        let padding = self.flexible_padding(ty);
        if padding > 0 {
            fields.push(("_padding".to_owned(), Scalar::Bit(padding)));
        }
        let bits: u32 = fields.iter().map(|(_, t)| t.width()).sum();
        if !bits.is_multiple_of(8) {
            let span = match ty {
                Type::Named(id, _) => self.t.defs.get_decl(*id).map_or(self.span, |d| d.name.span),
                _ => self.span,
            };
            self.diags.unsupported_hint(
                span,
                format!("header {name} has {bits} bits, but this target needs whole bytes"),
                "add a padding field",
            );
        }
        self.ir.storage.header_types.push(HeaderType {
            name: name.clone(),
            is_metadata: false,
            fields,
        });
        let index = self.ir.storage.header_types.len() - 1;
        self.header_types.insert(name, index);
        index
    }

    fn union_type(&mut self, ty: &Type) -> usize {
        let name = self.type_name(ty);
        if let Some(i) = self.union_types.get(&name) {
            return *i;
        }
        let members = self
            .fields_of(ty)
            .unwrap_or_default()
            .iter()
            .map(|(n, t)| (n.to_string(), self.header_type(t)))
            .collect();
        self.ir.storage.union_types.push(UnionType {
            name: name.clone(),
            members,
        });
        let index = self.ir.storage.union_types.len() - 1;
        self.union_types.insert(name, index);
        index
    }

    /// Scalar fields of a header or struct type, those of inner structs with dotted names.
    pub(super) fn flat_fields(&self, ty: &Type, prefix: &str, out: &mut Vec<(String, Scalar)>) {
        for (n, t) in self.fields_of(ty).unwrap_or_default() {
            let name = if prefix.is_empty() {
                n.to_string()
            } else {
                format!("{prefix}.{n}")
            };
            match self.scalar_of(&t) {
                Some(s) => out.push((name, s)),
                None => self.flat_fields(&t, &name, out),
            }
        }
    }

    /// The header of type `ty` at a place in storage.
    pub(super) fn header_at(&self, ty: &Type, at: HeaderRef) -> Val {
        let mut index = 0;
        let fields = self.header_fields(ty, &at, "", &mut index);
        Val::Header(Header { at, fields })
    }

    fn header_fields(
        &self,
        ty: &Type,
        at: &HeaderRef,
        prefix: &str,
        index: &mut usize,
    ) -> Vec<(Name, Val)> {
        let mut out = Vec::new();
        for (n, t) in self.fields_of(ty).unwrap_or_default() {
            let field = if prefix.is_empty() {
                n.to_string()
            } else {
                format!("{prefix}.{n}")
            };
            let v = match self.scalar_of(&t) {
                Some(ty) => {
                    let i = *index;
                    *index += 1;
                    Val::Scalar(match at {
                        HeaderRef::Static(h) => Ex::Field {
                            header: h.clone(),
                            field,
                            ty,
                        },
                        _ => Ex::FieldOf {
                            header: at.clone(),
                            field,
                            index: i,
                            ty,
                        },
                    })
                }
                None => Val::Struct(self.header_fields(&t, at, &field, index)),
            };
            out.push((n, v));
        }
        out
    }

    /// Element of a stack; a constant index names the element itself.
    pub(super) fn stack_element(&self, s: &Stack, index: &Ex) -> Val {
        let at = match index {
            Ex::Const(i, _) => HeaderRef::Static(format!("{}[{i}]", s.name)),
            _ => HeaderRef::Elem {
                stack: s.name.clone(),
                index: Box::new(index.clone()),
            },
        };
        self.header_at(&s.elem, at)
    }

    /// Union at a place of a stack of unions; `place` makes the reference to each member.
    pub(super) fn union_element(
        &self,
        s: &UnionStack,
        name: Option<String>,
        place: &dyn Fn(usize, &str) -> HeaderRef,
    ) -> Val {
        let members = self
            .fields_of(&s.elem)
            .unwrap_or_default()
            .into_iter()
            .enumerate()
            .map(|(i, (n, t))| {
                let v = self.header_at(&t, place(i, &n));
                (n, v)
            })
            .collect();
        Val::Union(Union { name, members })
    }
}
