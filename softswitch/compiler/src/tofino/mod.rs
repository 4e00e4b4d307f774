// SPDX-License-Identifier: Apache-2.0
//! The rules of Tofino's pipelines, and what they say about a program.
//!
//! The rules are those that depend on the program alone. Whether it fits the stages, their memory and the packet header
//! vector, only the target's compiler knows.

mod access;
mod arithmetic;
mod chain;
mod fields;
mod stateful;

use crate::diag::{Diagnostics, SourceMap};
use crate::ir::{Lowered, St, StKind};

/// Reports where a program breaks the rules, and describes its longest chains of dependent steps. Afterwards, accesses to
/// registers are ordinary statements. For other architectures, it does nothing.
pub fn finish(program: &mut Lowered, diags: &Diagnostics, sources: &SourceMap) -> String {
    if !program.architecture.is_tofino() {
        return String::new();
    }
    access::check(program, diags, sources);
    arithmetic::check(program, diags);
    stateful::check(program, diags);
    let report = report(program, sources);
    let blocks = program.pipelines.iter_mut().map(|block| &mut block.body);
    let actions = program.actions.iter_mut().map(|action| &mut action.body);
    blocks.chain(actions).for_each(inline_accesses);
    report
}

/// Replaces accesses to registers by their statements.
fn inline_accesses(block: &mut Vec<St>) {
    for mut st in std::mem::take(block) {
        st.kind.blocks_mut().into_iter().for_each(inline_accesses);
        match st.kind {
            StKind::Access { mut body, .. } => block.append(&mut body),
            _ => block.push(st),
        }
    }
}

/// Describes the longest chain of dependent steps of each gress.
fn report(program: &Lowered, sources: &SourceMap) -> String {
    let mut text = String::new();
    for block in &program.pipelines {
        let chain = chain::longest(program, &block.body);
        text += &format!(
            "{}: the longest chain of dependent steps needs {} stages at least\n",
            block.name,
            chain.last().map_or(0, |step| step.stage)
        );
        for step in chain {
            let at = sources.line_col(step.span);
            text += &format!("{:4}  {}  {}:{}\n", step.stage, step.name, at.file, at.line);
        }
    }
    text + "This is a lower bound: it ignores memory, hash units, ALUs and containers. Only the target's compiler knows the stages.\n"
}
