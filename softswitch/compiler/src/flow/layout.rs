// SPDX-License-Identifier: Apache-2.0
//! The layout of variables in slots.

use std::collections::HashMap;
use std::rc::Rc;

use crate::ast::{CompositeKind, DeclKind, Name};
use crate::types::{Type, Typed};

/// Maximum number of parts of an analysed variable.
const MAX_PARTS: usize = 1 << 14;

/// The layout of a type: one slot per scalar part, and one per header.
pub struct Layout {
    pub shape: Shape,
    pub values: usize,
    pub headers: usize,
}

pub enum Shape {
    Value,
    Fields(CompositeKind, Vec<Part>),
    Items(Vec<Part>),
    Stack(Rc<Layout>, usize),
}

/// A field or item, with its offset.
pub struct Part {
    name: Name,
    value: usize,
    header: usize,
    layout: Rc<Layout>,
}

/// A variable or a part of it: consecutive slots.
#[derive(Clone)]
pub struct Place {
    pub layout: Rc<Layout>,
    pub value: usize,
    pub header: usize,
}

impl Layout {
    fn size_of_parts(parts: &[Part]) -> (usize, usize) {
        parts.last().map_or((0, 0), |p| {
            (p.value + p.layout.values, p.header + p.layout.headers)
        })
    }
}

impl Place {
    pub fn slots(&self) -> usize {
        self.layout.values + self.layout.headers
    }

    fn part(&self, part: &Part) -> Place {
        Place {
            layout: part.layout.clone(),
            value: self.value + part.value,
            header: self.header + part.header,
        }
    }

    pub fn field(&self, name: &str) -> Option<Place> {
        match &self.layout.shape {
            Shape::Fields(_, parts) => parts
                .iter()
                .find(|p| &*p.name == name)
                .map(|p| self.part(p)),
            _ => None,
        }
    }

    /// Returns the element of a stack, the item of a tuple or the field at this index.
    pub fn item(&self, index: usize) -> Option<Place> {
        match &self.layout.shape {
            Shape::Fields(_, parts) | Shape::Items(parts) => parts.get(index).map(|p| self.part(p)),
            Shape::Stack(layout, size) if index < *size => Some(Place {
                layout: layout.clone(),
                value: self.value + index * layout.values,
                header: self.header + index * layout.headers,
            }),
            _ => None,
        }
    }

    /// Returns all items, as [`Self::item`] does for one.
    pub fn items(&self) -> impl Iterator<Item = Place> {
        (0..).map_while(|i| self.item(i))
    }

    /// Returns the fields with their names.
    pub fn fields(&self) -> Vec<(Name, Place)> {
        match &self.layout.shape {
            Shape::Fields(_, parts) => parts
                .iter()
                .map(|p| (p.name.clone(), self.part(p)))
                .collect(),
            _ => Vec::new(),
        }
    }

    pub fn kind(&self) -> Option<CompositeKind> {
        match &self.layout.shape {
            Shape::Fields(kind, _) => Some(*kind),
            _ => None,
        }
    }

    /// Calls `f` on the slot of each value outside headers.
    pub fn outside_headers(&self, f: &mut dyn FnMut(usize)) {
        match &self.layout.shape {
            Shape::Value => f(self.value),
            Shape::Fields(CompositeKind::Struct, parts) | Shape::Items(parts) => {
                parts.iter().for_each(|p| self.part(p).outside_headers(f));
            }
            _ => {}
        }
    }
}

/// The layouts of a program's types.
pub struct Layouts<'t, 'a> {
    typed: &'t Typed<'a>,
    known: HashMap<Type, Option<Rc<Layout>>>,
}

impl<'t, 'a> Layouts<'t, 'a> {
    pub fn new(typed: &'t Typed<'a>) -> Self {
        let known = HashMap::new();
        Layouts { typed, known }
    }

    /// Returns the layout of a type; `None` if it has no values or too many parts.
    pub fn of(&mut self, ty: &Type) -> Option<Rc<Layout>> {
        if let Some(known) = self.known.get(ty) {
            return known.clone();
        }
        let layout = self
            .make(ty)
            .filter(|l| l.values <= MAX_PARTS && l.headers <= MAX_PARTS)
            .map(Rc::new);
        self.known.insert(ty.clone(), layout.clone());
        layout
    }

    fn make(&mut self, ty: &Type) -> Option<Layout> {
        let value = Layout {
            shape: Shape::Value,
            values: 1,
            headers: 0,
        };
        match ty {
            Type::Bool
            | Type::Error
            | Type::Bit(_)
            | Type::SInt(_)
            | Type::Varbit(_)
            | Type::Var(_) => Some(value),
            Type::Tuple(items) => {
                let unnamed: Name = "".into();
                let parts = self.parts(items.iter().map(|t| (unnamed.clone(), t.clone())))?;
                let (values, headers) = Layout::size_of_parts(&parts);
                let shape = Shape::Items(parts);
                Some(Layout {
                    shape,
                    values,
                    headers,
                })
            }
            Type::Stack(elem, size) => {
                let elem = self.of(elem)?;
                let size = usize::try_from(*size).ok()?;
                Some(Layout {
                    values: elem.values.saturating_mul(size),
                    headers: elem.headers.saturating_mul(size),
                    shape: Shape::Stack(elem, size),
                })
            }
            Type::Named(id, _) => match &self.typed.defs.get_decl(*id)?.kind {
                DeclKind::Enum { .. } | DeclKind::NewType(_) => Some(value),
                DeclKind::Composite { kind, .. } => {
                    let fields = self.typed.fields(ty)?;
                    let own = usize::from(*kind == CompositeKind::Header);
                    let mut parts = self.parts(fields)?;
                    parts.iter_mut().for_each(|p| p.header += own);
                    let (values, headers) = Layout::size_of_parts(&parts);
                    Some(Layout {
                        shape: Shape::Fields(*kind, parts),
                        values,
                        headers: headers.max(own),
                    })
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn parts(&mut self, fields: impl IntoIterator<Item = (Name, Type)>) -> Option<Vec<Part>> {
        let (mut value, mut header) = (0usize, 0usize);
        let mut parts = Vec::new();
        for (name, ty) in fields {
            let layout = self.of(&ty)?;
            parts.push(Part {
                name,
                value,
                header,
                layout: layout.clone(),
            });
            value += layout.values;
            header += layout.headers;
        }
        Some(parts)
    }
}
