// SPDX-License-Identifier: Apache-2.0
//! The pipelines of TNA's packages: one for all pipes, or one for each pipe.

use super::Lower;
use super::frame::Frame;
use super::tna::BLOCKS;
use super::value::Val;
use crate::ast::{Arg, Decl, DeclKind, Expr, ExprKind};
use crate::types::CallInfo;
use std::rc::Rc;

/// A pipeline of the package.
pub(super) struct Pipeline {
    /// The name in front of the names of its blocks and objects; empty for a single pipeline.
    pub prefix: String,
    /// Its position among the parameters of the package.
    pub position: usize,
    pub blocks: [usize; BLOCKS.len()],
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

    /// Returns the values of a package's arguments, whose names begin with the name of the package if there are several.
    pub(super) fn package_values(
        &mut self,
        name: &str,
        info: &CallInfo,
        args: &'a [Arg],
    ) -> Vec<Val> {
        if !self.has_several_pipelines() {
            return self.argument_values(info, args);
        }
        let frame = Frame {
            prefix: name.to_owned(),
            ..Frame::child(&self.frame)
        };
        let mut values = Vec::new();
        self.in_frame(Rc::new(frame), |s| values = s.argument_values(info, args));
        values
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
            let Val::Package(arguments) = value else {
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
            let blocks = self.pipeline_blocks(main, arguments)?;
            pipelines.push(Pipeline {
                prefix,
                position,
                blocks,
            });
        }
        Some(pipelines)
    }

    /// Returns the blocks of a pipeline; `None` after an error.
    fn pipeline_blocks(&self, main: &'a Decl, pipeline: &[Val]) -> Option<[usize; BLOCKS.len()]> {
        if pipeline.get(BLOCKS.len()).is_some_and(|v| *v != Val::Unit) {
            self.diags.unsupported_hint(
                main.span,
                "this target does not have the ghost thread",
                "leave the parameter 'ghost' of Pipeline out",
            );
            return None;
        }
        let mut blocks = [0; BLOCKS.len()];
        for ((block, value), name) in blocks.iter_mut().zip(pipeline).zip(BLOCKS) {
            let Val::Block(b) = value else {
                self.missing_block(main, name);
                return None;
            };
            *block = *b;
        }
        Some(blocks)
    }
}
