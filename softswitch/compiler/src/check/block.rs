// SPDX-License-Identifier: Apache-2.0
//! Checks parsers and controls.

use super::{Checker, Context};
use crate::ast::{ControlDecl, Decl, Param, ParserDecl, TypeParam};

impl<'a> Checker<'a> {
    pub(super) fn parser(&mut self, d: &'a Decl, p: &'a ParserDecl) {
        self.declare(&d.name, d.id);
        self.open.push(d.id);
        self.scoped(|c| {
            c.all_params(&p.tparams, &p.params, &p.ctor_params);
            if p.is_type {
                return;
            }
            c.none_optional(&p.ctor_params);
            let outer = std::mem::replace(
                &mut c.context,
                Context {
                    in_parser: true,
                    ..Context::default()
                },
            );
            // States can be used before their declaration, so they are not names of the scope.
            c.scoped(|c| {
                p.locals.iter().for_each(|l| c.local(l));
                c.parser_states(d, p);
            });
            c.context = outer;
        });
        self.open.pop();
    }

    pub(super) fn control(&mut self, d: &'a Decl, k: &'a ControlDecl) {
        self.declare(&d.name, d.id);
        self.open.push(d.id);
        self.scoped(|c| {
            c.all_params(&k.tparams, &k.params, &k.ctor_params);
            if k.is_type {
                return;
            }
            c.none_optional(&k.ctor_params);
            for p in &k.ctor_params {
                if c.is_parser(&c.type_of(p.ty.id)) {
                    c.error(p.span, "a control cannot have a parser inside");
                }
            }
            let outer = std::mem::replace(
                &mut c.context,
                Context {
                    in_control: true,
                    ..Context::default()
                },
            );
            c.scoped(|c| {
                k.locals.iter().for_each(|l| c.local(l));
                c.context.in_body = true;
                c.block(&k.body);
            });
            c.context = outer;
        });
        self.open.pop();
    }

    /// Declares the type parameters and the parameters of `apply` and of the constructor.
    fn all_params(
        &mut self,
        types: &'a [TypeParam],
        params: &'a [Param],
        constructor: &'a [Param],
    ) {
        self.type_params(types);
        self.params(params);
        self.params(constructor);
        self.no_blocks(params, true);
        self.no_blocks(constructor, false);
        self.without_direction(constructor);
        for p in params.iter().chain(constructor) {
            let t = self.type_of(p.ty.id);
            self.bare_generic(&p.ty, &t);
        }
    }
}
