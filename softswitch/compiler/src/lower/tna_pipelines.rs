// SPDX-License-Identifier: Apache-2.0
//! The pipelines of TNA's packages: one for all pipes, or one for each pipe.

use super::Lower;
use super::frame::Frame;
use super::tna_parsers::{GRESSES, PortParser};
use super::value::Val;
use crate::ast::{Arg, Decl, DeclKind, Expr, ExprKind};
use crate::types::CallInfo;
use std::rc::Rc;

/// Parameters of `Pipeline` for each gress: parser, control and deparser.
pub(super) const BLOCKS: [[&str; 3]; GRESSES] = [
    ["ingress_parser", "ingress", "ingress_deparser"],
    ["egress_parser", "egress", "egress_deparser"],
];

/// Position of the parameter `ghost`.
const GHOST: usize = 6;

/// The blocks of a gress.
pub(super) struct GressBlocks {
    pub parsers: Vec<PortParser>,
    pub control: usize,
    pub deparser: usize,
}

impl GressBlocks {
    /// Returns all blocks in the order of the package's parameters.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        let parsers = self.parsers.iter().map(|parser| parser.block);
        parsers.chain([self.control, self.deparser])
    }
}

/// A pipeline of the package.
pub(super) struct Pipeline {
    /// The name in front of the names of its blocks and objects; empty for a single pipeline.
    pub prefix: String,
    /// Its position among the parameters of the package.
    pub position: usize,
    pub gresses: [GressBlocks; GRESSES],
    /// The control of the ghost thread.
    pub ghost: Option<usize>,
}

/// Returns true for the packages of a gress's parsers.
fn is_parsers(package: &Decl) -> bool {
    matches!(&*package.name.name, "IngressParsers" | "EgressParsers")
}

/// Puts the name of a pipeline in front of a name, unless the pipeline has no name.
pub(super) fn qualified(pipeline: &str, name: &str) -> String {
    match pipeline {
        "" => name.to_owned(),
        _ => format!("{pipeline}.{name}"),
    }
}

/// Returns the name of an argument of the package; `None` for a constructor call.
fn argument_name(e: &Expr) -> Option<&str> {
    match &e.kind {
        ExprKind::Name { name, .. } => Some(name),
        _ => None,
    }
}

impl<'a> Lower<'a> {
    /// Returns true if pipes have different pipelines, so that names begin with the name of the pipeline.
    pub(super) fn has_several_pipelines(&self) -> bool {
        let Some(DeclKind::Instance { args, .. }) = self.ir.package.map(|main| &main.kind) else {
            return false;
        };
        let mut names = args.iter().map(|arg| argument_name(&arg.expr));
        let first = names.next();
        self.ir.architecture.is_tofino() && names.any(|name| Some(name) != first)
    }

    /// Returns the values of the arguments of a declared package. Their names begin with that of the pipeline if there are
    /// several, and with those of the package and the parameter if each argument is the parser of some ports.
    pub(super) fn package_values(
        &mut self,
        d: &'a Decl,
        package: &Decl,
        info: &CallInfo,
        args: &'a [Arg],
    ) -> Vec<Val> {
        let pipeline = match self.has_several_pipelines() {
            true => self.pipeline_of(d).to_owned(),
            false => String::new(),
        };
        let mut values = Vec::new();
        for (i, position) in info.args.iter().enumerate() {
            let Some(arg) = position.and_then(|k| args.get(k)) else {
                values.push(Val::Unit);
                continue;
            };
            let prefix = match is_parsers(package) {
                true => qualified(&pipeline, &format!("{}.prsr{i}", d.name.name)),
                false => pipeline.clone(),
            };
            let frame = Frame {
                prefix,
                ..Frame::child(&self.frame)
            };
            let value = self.in_frame(Rc::new(frame), |s| s.eval(&arg.expr));
            values.push(value);
        }
        values
    }

    /// Returns the name of the pipeline that a declared package belongs to: its own, or that of the pipeline that gets it.
    fn pipeline_of(&self, d: &'a Decl) -> &'a str {
        let is_it = |e: &Expr| argument_name(e) == Some(&d.name.name);
        let mut decls = self.t.program.decls.iter();
        let user = decls.find(|d| match &d.kind {
            DeclKind::Instance { args, .. } => args.iter().any(|a| is_it(&a.expr)),
            _ => false,
        });
        let pipeline = user.filter(|user| &*user.name.name != "main");
        &pipeline.unwrap_or(d).name.name
    }

    /// Returns the different pipelines of the package, and sets which pipe runs which one; `None` after an error.
    pub(super) fn tofino_pipelines(&mut self, main: &'a Decl) -> Option<Vec<Pipeline>> {
        let package = self.package_arguments(main)?;
        let DeclKind::Instance { args, .. } = &main.kind else {
            return None;
        };
        let info = self.t.calls.get(&main.id)?;
        let has_several = self.has_several_pipelines();
        let mut pipelines: Vec<Pipeline> = Vec::new();
        for (position, value) in package.iter().enumerate() {
            let pipe = format!("pipe{position}");
            let Val::Package {
                args: arguments, ..
            } = value
            else {
                if position == 0 {
                    self.missing_block(main, &pipe);
                    return None;
                }
                continue;
            };
            let argument = info.args[position].and_then(|k| args.get(k))?;
            let prefix = match argument_name(&argument.expr) {
                _ if !has_several => String::new(),
                Some(name) => name.to_owned(),
                None => {
                    self.diags.error_hint(
                        argument.expr.span,
                        "this pipeline has no name, and the program has several",
                        "declare it before main: Pipeline(...) name;",
                    );
                    return None;
                }
            };
            if has_several {
                self.ir.pipes.push(prefix.clone());
            }
            if pipelines.iter().any(|known| known.prefix == prefix) {
                continue;
            }
            let gresses = self.pipeline_blocks(main, arguments)?;
            pipelines.push(Pipeline {
                prefix,
                position,
                gresses,
                ghost: match arguments.get(GHOST) {
                    Some(Val::Block(block)) => Some(*block),
                    _ => None,
                },
            });
        }
        Some(pipelines)
    }

    /// Returns the blocks of a pipeline; `None` after an error.
    fn pipeline_blocks(&self, main: &'a Decl, pipeline: &[Val]) -> Option<[GressBlocks; GRESSES]> {
        let mut gresses = pipeline.chunks(BLOCKS[0].len());
        let [ingress, egress] = BLOCKS.map(|names| {
            let values = gresses.next().unwrap_or_default();
            self.gress_blocks(main, values, names)
        });
        Some([ingress?, egress?])
    }

    fn gress_blocks(
        &self,
        main: &'a Decl,
        values: &[Val],
        [parser, control, deparser]: [&str; 3],
    ) -> Option<GressBlocks> {
        let block = |position: usize, name| match values.get(position) {
            Some(Val::Block(block)) => Some(*block),
            _ => {
                self.missing_block(main, name);
                None
            }
        };
        let parsers = values.first().and_then(|value| self.port_parsers(value));
        if parsers.is_none() {
            self.missing_block(main, parser);
        }
        Some(GressBlocks {
            parsers: parsers?,
            control: block(1, control)?,
            deparser: block(2, deparser)?,
        })
    }
}
