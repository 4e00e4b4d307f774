// SPDX-License-Identifier: Apache-2.0
//! The HTML page: totals, and each source file with its counts.

use std::fmt::Write as _;

use crate::tracefile::{FileCounts, Tracefile};

const STYLE: &str = include_str!("page.css");

/// Return the page of these counts. Source files that cannot be read have only their counted lines.
pub(crate) fn html(all: &Tracefile) -> String {
    let mut out = String::new();
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Coverage</title>\n<style>\n{STYLE}</style>\n\
         <h1>Coverage</h1>\n<table class=\"totals\">\n<tr><th>File<th>Lines<th>Functions<th>Branches\n"
    );
    for (number, (path, file)) in all.files.iter().enumerate() {
        let path = escape(path);
        let _ = write!(out, "<tr><td><a href=\"#file{number}\">{path}</a>");
        for (covered, all) in [
            file.line_totals(),
            file.function_totals(),
            file.branch_totals(),
        ] {
            let class = if covered == all { "hit" } else { "miss" };
            let share = percent(covered, all);
            let _ = write!(
                out,
                "<td class=\"{class}\">{share} <small>{covered} of {all}</small>"
            );
        }
        out.push('\n');
    }
    out.push_str("</table>\n");
    for (number, (path, file)) in all.files.iter().enumerate() {
        let _ = writeln!(out, "<h2 id=\"file{number}\">{}</h2>", escape(path));
        functions(&mut out, file);
        lines(&mut out, path, file);
    }
    out
}

/// Return a percentage with one digit; 100 % of nothing.
fn percent(part: usize, whole: usize) -> String {
    let permille = (part * 1000).checked_div(whole).unwrap_or(1000);
    format!("{}.{} %", permille / 10, permille % 10)
}

/// List the functions without calls.
fn functions(out: &mut String, file: &FileCounts) {
    let unused = file.functions.iter().filter(|(_, (_, count))| *count == 0);
    let unused: Vec<String> = unused.map(|(name, _)| escape(name)).collect();
    if !unused.is_empty() {
        let list = unused.join(", ");
        let _ = writeln!(out, "<p>Actions and parser states without packets: {list}");
    }
}

fn lines(out: &mut String, path: &str, file: &FileCounts) {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let source: Vec<&str> = text.lines().collect();
    out.push_str("<table class=\"source\">\n");
    let numbers: Vec<u32> = match source.is_empty() {
        true => file.lines.keys().copied().collect(),
        false => (1..=source.len() as u32).collect(),
    };
    for number in numbers {
        let line = source.get(number as usize - 1).copied().unwrap_or_default();
        let count = file.lines.get(&number);
        let branches = file.branches.range((number, 0)..(number + 1, 0));
        let outcomes: Vec<&(String, u64)> = branches.flat_map(|(_, outcomes)| outcomes).collect();
        let class = match count {
            None => "",
            Some(0) => " class=\"miss\"",
            Some(_) if outcomes.iter().any(|(_, count)| *count == 0) => " class=\"part\"",
            Some(_) => " class=\"hit\"",
        };
        let count = count.map_or_else(String::new, u64::to_string);
        let _ = write!(
            out,
            "<tr{class}><td>{number}<td>{count}<td><pre>{}</pre><td>",
            escape(line)
        );
        for (outcome, count) in outcomes {
            let class = if *count == 0 { "miss" } else { "hit" };
            let outcome = escape(outcome);
            let _ = write!(out, "<span class=\"{class}\">{outcome}: {count}</span> ");
        }
        out.push('\n');
    }
    out.push_str("</table>\n");
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
