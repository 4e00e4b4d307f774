//! Parsers and controls.

use super::{Checker, Context};
use crate::ast::{ControlDecl, Decl, ParserDecl};

impl<'a> Checker<'a> {
    pub(super) fn parser(&mut self, d: &'a Decl, p: &'a ParserDecl) {
        self.declare(&d.name, d.id);
        self.open.push(d.id);
        self.scoped(|c| {
            c.type_params(&p.tparams);
            c.params(&p.params);
            c.params(&p.ctor_params);
            c.no_blocks(&p.params);
            c.no_blocks(&p.ctor_params);
            c.without_direction(&p.ctor_params);
            for p in p.params.iter().chain(&p.ctor_params) {
                let t = c.type_of(p.ty.id);
                c.bare_generic(&p.ty, &t);
            }
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
            // States can be used before they are declared, so they are no names of the scope.
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
            c.type_params(&k.tparams);
            c.params(&k.params);
            c.params(&k.ctor_params);
            c.no_blocks(&k.params);
            c.no_blocks(&k.ctor_params);
            c.without_direction(&k.ctor_params);
            for p in k.params.iter().chain(&k.ctor_params) {
                let t = c.type_of(p.ty.id);
                c.bare_generic(&p.ty, &t);
            }
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
}
