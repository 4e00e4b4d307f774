// SPDX-License-Identifier: Apache-2.0
//! Names of a program's objects, and their HTML.

use std::fmt::Write;

use softswitch_pipeline::{Info, MatchKind, TableInfo};

/// Escapes text for HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Returns the P4 name of a match kind.
pub fn kind(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact",
        MatchKind::Lpm => "lpm",
        MatchKind::Ternary => "ternary",
        MatchKind::Range => "range",
        MatchKind::Optional => "optional",
        MatchKind::Valid => "valid",
    }
}

/// Returns the tables that the control plane can write; others represent the call of an action.
pub fn writable(info: &Info) -> impl Iterator<Item = &TableInfo> {
    let tables = info.tables.iter();
    tables.filter(|t| !(t.key.is_empty() && t.const_default))
}

/// Formats a program as HTML: its tables, and one line per kind of other objects.
pub fn html(name: &str, info: &Info) -> String {
    let mut text = format!(
        "<b>{}</b><table><tr><th>table</th><th>key</th><th>actions</th><th>size</th></tr>",
        escape(name)
    );
    for t in writable(info) {
        let key: Vec<String> = t
            .key
            .iter()
            .map(|k| {
                format!(
                    "{}: {} bit&lt;{}&gt;",
                    escape(&k.name),
                    kind(k.kind),
                    k.width
                )
            })
            .collect();
        let actions: Vec<String> = t.actions.iter().map(|(n, _)| escape(n)).collect();
        let _ = write!(
            text,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&t.name),
            key.join("<br>"),
            actions.join("<br>"),
            t.size
        );
    }
    text.push_str("</table>");
    for (kind, names) in [
        ("registers", names(&info.registers, |r| &r.name)),
        ("counters", names(&info.counters, |c| &c.name)),
        ("meters", names(&info.meters, |m| &m.name)),
        ("digests", names(&info.digests, |d| &d.name)),
    ] {
        if !names.is_empty() {
            let _ = write!(text, "<div>{kind}: {}</div>", escape(&names.join(", ")));
        }
    }
    text
}

/// Returns the names of objects.
pub fn names<T>(list: &[T], name: impl Fn(&T) -> &String) -> Vec<&str> {
    list.iter().map(|o| name(o).as_str()).collect()
}
