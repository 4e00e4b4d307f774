// SPDX-License-Identifier: Apache-2.0
//! Parses `@entry_restriction` and `@action_restriction`.

use softswitch_pipeline::MatchKind;

use crate::p4rt::annotation;
use crate::p4rt::constraint::{Kind, Restriction, Type, Variable};
use crate::p4rt::schema::{Field, Param};
use crate::p4rt::translation::Codec;
use crate::proto::p4::config::v1::{self as cfg, Preamble};

/// Returns the restrictions of a table's entries.
///
/// # Errors
/// Place, fault and fix of a malformed restriction.
pub fn of_table(table: &cfg::Table, fields: &[Field]) -> Result<Vec<Restriction>, String> {
    let variables = fields.iter().map(|field| {
        let kind = match field.kind {
            MatchKind::Exact | MatchKind::Valid => Kind::Exact,
            MatchKind::Lpm => Kind::Lpm,
            MatchKind::Ternary => Kind::Ternary,
            MatchKind::Range => Kind::Range,
            MatchKind::Optional => Kind::Optional,
        };
        let width = number_width(&field.codec);
        Variable {
            name: &field.name,
            r#type: width.map(|width| Type::Key(kind, width)),
        }
    });
    let variables: Vec<_> = variables.collect();
    parse(
        "table",
        table.preamble.as_ref(),
        "entry_restriction",
        &variables,
    )
}

/// Returns the restrictions of an action's arguments.
///
/// # Errors
/// Place, fault and fix of a malformed restriction.
pub fn of_action(action: &cfg::Action, params: &[Param]) -> Result<Vec<Restriction>, String> {
    let variables = params.iter().map(|param| Variable {
        name: &param.name,
        r#type: number_width(&param.codec).map(Type::Bits),
    });
    let variables: Vec<_> = variables.collect();
    parse(
        "action",
        action.preamble.as_ref(),
        "action_restriction",
        &variables,
    )
}

/// Returns the width of the controller's numbers; `None` if it uses strings.
fn number_width(codec: &Codec) -> Option<u32> {
    (!codec.is_name()).then(|| codec.controller_width())
}

fn parse(
    kind: &str,
    preamble: Option<&Preamble>,
    annotation: &str,
    variables: &[Variable<'_>],
) -> Result<Vec<Restriction>, String> {
    let Some(preamble) = preamble else {
        return Ok(vec![]);
    };
    let place = format!("{kind} {}, @{annotation}", preamble.name);
    let is_entry = kind == "table";
    let bodies = annotation::bodies(&preamble.annotations, annotation);
    let restrictions = bodies.map(|body| {
        let text = annotation::text(body).map_err(|e| format!("{place}: {e}"))?;
        let parsed = Restriction::new(&text, variables, is_entry);
        parsed.map_err(|e| format!("{place}:{e}"))
    });
    restrictions.collect()
}
