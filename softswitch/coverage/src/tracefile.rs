// SPDX-License-Identifier: Apache-2.0
//! LCOV's trace files (manual page geninfo(1), section "TRACEFILE FORMAT").

use std::collections::BTreeMap;
use std::fmt;

use softswitch_pipeline::{Coverage, SourceLocation};

use crate::sources::{Sources, version};

/// Counts by source file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tracefile {
    /// The counts of each file, by its path.
    pub files: BTreeMap<String, FileCounts>,
}

/// Counts of one source file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// The version of the file's contents.
    pub version: Option<String>,
    /// Line and number of calls of each function: an action or a parser state.
    pub functions: BTreeMap<String, (u32, u64)>,
    /// Number of executions of each line.
    pub lines: BTreeMap<u32, u64>,
    /// Outcomes of each branch and their counts, by its line and its number within the line.
    pub branches: BTreeMap<(u32, u32), Vec<(String, u64)>>,
}

/// A line that is not a record of LCOV.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Number of the line, from 1.
    pub line: usize,
    /// The line.
    pub text: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}: invalid record '{}': remove the file, or choose another one",
            self.line, self.text
        )
    }
}

impl std::error::Error for Malformed {}

impl Tracefile {
    /// Arrange counts by file and line.
    pub fn new(coverage: &Coverage, sources: &Sources) -> Self {
        let mut files = Files {
            sources,
            paths: BTreeMap::new(),
            all: Self::default(),
        };
        for function in &coverage.functions {
            if let Some(file) = files.named(&function.source.file) {
                let calls = file.functions.entry(function.name.clone());
                let (_, count) = calls.or_insert((function.source.line, 0));
                *count += function.count;
            }
        }
        // Copies of a statement, of one action in several tables, count together.
        let mut statements: BTreeMap<(&str, u32, &str), u64> = BTreeMap::new();
        for statement in &coverage.statements {
            let SourceLocation { file, line, text } = &statement.source;
            *statements.entry((file, *line, text)).or_default() += statement.count;
        }
        for ((file, line, _), count) in statements {
            if let Some(file) = files.named(file) {
                let most = file.lines.entry(line).or_default();
                *most = count.max(*most);
            }
        }
        let mut blocks: BTreeMap<(&str, u32), Vec<&str>> = BTreeMap::new();
        for branch in &coverage.branches {
            let SourceLocation { file, line, text } = &branch.source;
            let known = blocks.entry((file, *line)).or_default();
            let block = known.iter().position(|other| other == text);
            let block = block.unwrap_or_else(|| {
                known.push(text);
                known.len() - 1
            });
            if let Some(file) = files.named(file) {
                let outcomes = file.branches.entry((*line, block as u32)).or_default();
                add(outcomes, &branch.outcomes);
            }
        }
        files.all
    }

    /// Add the counts of `other`. Returns the files whose versions differ; their earlier counts are dropped.
    pub fn merge(&mut self, other: Self) -> Vec<String> {
        let mut changed = Vec::new();
        for (path, new) in other.files {
            let known = self.files.entry(path.clone()).or_default();
            let is_same = known.version.is_none() || known.version == new.version;
            if !is_same {
                *known = FileCounts::default();
                changed.push(path);
            }
            known.merge(new);
        }
        changed
    }

    /// Parse a trace file. Records that softswitch does not write are ignored.
    ///
    /// # Errors
    /// With the first line that is malformed.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let mut all = Self::default();
        let mut file = None;
        for (number, line) in text.lines().enumerate() {
            let malformed = || Malformed {
                line: number + 1,
                text: line.chars().take(60).collect(),
            };
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line == "end_of_record" {
                file = None;
                continue;
            }
            let (kind, value) = line.split_once(':').ok_or_else(malformed)?;
            match (kind, &mut file) {
                ("TN", _) => {}
                ("SF", _) => file = Some(all.files.entry(value.to_owned()).or_default()),
                (_, Some(file)) => file.record(kind, value).ok_or_else(malformed)?,
                _ => return Err(malformed()),
            }
        }
        Ok(all)
    }
}

impl FileCounts {
    fn merge(&mut self, other: Self) {
        self.version = other.version;
        for (name, (line, count)) in other.functions {
            self.functions.entry(name).or_insert((line, 0)).1 += count;
        }
        for (line, count) in other.lines {
            *self.lines.entry(line).or_default() += count;
        }
        for (place, outcomes) in other.branches {
            add(self.branches.entry(place).or_default(), &outcomes);
        }
    }

    /// Read a record; returns `None` if it is malformed.
    fn record(&mut self, kind: &str, value: &str) -> Option<()> {
        match kind {
            "VER" => self.version = Some(value.to_owned()),
            "FN" => {
                let (line, name) = value.split_once(',')?;
                let line = line.parse().ok()?;
                self.functions.entry(name.to_owned()).or_default().0 = line;
            }
            "FNDA" => {
                let (count, name) = value.split_once(',')?;
                self.functions.entry(name.to_owned()).or_default().1 +=
                    count.parse::<u64>().ok()?;
            }
            "DA" => {
                let mut fields = value.split(',');
                let line = fields.next()?.parse().ok()?;
                *self.lines.entry(line).or_default() += fields.next()?.parse::<u64>().ok()?;
            }
            "BRDA" => {
                let mut fields = value.splitn(4, ',');
                let line = fields.next()?.parse().ok()?;
                let block = fields.next()?.parse().ok()?;
                let outcome = fields.next()?.to_owned();
                let count = match fields.next()? {
                    "-" => 0,
                    count => count.parse().ok()?,
                };
                let outcomes = self.branches.entry((line, block)).or_default();
                add(outcomes, &[(outcome, count)]);
            }
            _ => {}
        }
        Some(())
    }

    /// Return the number of covered functions, and that of all.
    pub fn function_totals(&self) -> (usize, usize) {
        let covered = self.functions.values().filter(|(_, count)| *count > 0);
        (covered.count(), self.functions.len())
    }

    /// Return the number of covered lines, and that of all.
    pub fn line_totals(&self) -> (usize, usize) {
        let covered = self.lines.values().filter(|count| **count > 0);
        (covered.count(), self.lines.len())
    }

    /// Return the number of covered outcomes of branches, and that of all.
    pub fn branch_totals(&self) -> (usize, usize) {
        let outcomes = || self.branches.values().flatten();
        let covered = outcomes().filter(|(_, count)| *count > 0);
        (covered.count(), outcomes().count())
    }
}

/// Add counts by outcome.
fn add(to: &mut Vec<(String, u64)>, from: &[(String, u64)]) {
    for (outcome, count) in from {
        match to.iter_mut().find(|(known, _)| known == outcome) {
            Some((_, sum)) => *sum += count,
            None => to.push((outcome.clone(), *count)),
        }
    }
}

impl fmt::Display for Tracefile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, file) in &self.files {
            writeln!(f, "TN:\nSF:{path}")?;
            if let Some(version) = &file.version {
                writeln!(f, "VER:{version}")?;
            }
            for (name, (line, _)) in &file.functions {
                writeln!(f, "FN:{line},{name}")?;
            }
            for (name, (_, count)) in &file.functions {
                writeln!(f, "FNDA:{count},{name}")?;
            }
            let (covered, all) = file.function_totals();
            writeln!(f, "FNF:{all}\nFNH:{covered}")?;
            for ((line, block), outcomes) in &file.branches {
                let is_reached = outcomes.iter().any(|(_, count)| *count > 0);
                for (outcome, count) in outcomes {
                    write!(f, "BRDA:{line},{block},{outcome},")?;
                    match is_reached {
                        true => writeln!(f, "{count}")?,
                        false => writeln!(f, "-")?,
                    }
                }
            }
            let (covered, all) = file.branch_totals();
            writeln!(f, "BRF:{all}\nBRH:{covered}")?;
            for (line, count) in &file.lines {
                writeln!(f, "DA:{line},{count}")?;
            }
            let (covered, all) = file.line_totals();
            writeln!(f, "LF:{all}\nLH:{covered}\nend_of_record")?;
        }
        Ok(())
    }
}

/// The files of a program that are being arranged.
struct Files<'a> {
    sources: &'a Sources,
    /// Paths by the program's names.
    paths: BTreeMap<String, Option<String>>,
    all: Tracefile,
}

impl Files<'_> {
    /// Return the counts of a file by the program's name for it; `None` for a file of the compiler.
    fn named(&mut self, name: &str) -> Option<&mut FileCounts> {
        let path = self.paths.entry(name.to_owned());
        let path = path.or_insert_with(|| self.sources.locate(name)).as_ref()?;
        let file = self.all.files.entry(path.clone());
        Some(file.or_insert_with(|| FileCounts {
            version: version(path),
            ..FileCounts::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "TN:\nSF:a.p4\nVER:00000001\nFN:3,I.go\nFNDA:2,I.go\nFNF:1\nFNH:1\nBRDA:5,0,true,2\nBRDA:5,0,false,0\n\
                        BRDA:9,0,hit,-\nBRDA:9,0,miss,-\nBRF:4\nBRH:1\nDA:3,2\nDA:5,2\nDA:9,0\nLF:3\nLH:2\nend_of_record\n";

    #[test]
    fn text_is_read_and_written() {
        let file = Tracefile::parse(TEXT).expect("a valid file");
        assert_eq!(file.to_string(), TEXT);
        let file = &file.files["a.p4"];
        assert_eq!(file.line_totals(), (2, 3));
        assert_eq!(file.branch_totals(), (1, 4));
        assert_eq!(file.functions["I.go"], (3, 2));
    }

    #[test]
    fn counts_are_added() {
        let mut sum = Tracefile::parse(TEXT).expect("a valid file");
        let other = TEXT.replace("-\n", "1\n").replace("\nDA:9,0", "\nDA:9,2");
        let other = Tracefile::parse(&other).expect("a valid file");
        assert_eq!(sum.merge(other), [""; 0]);
        let file = &sum.files["a.p4"];
        assert_eq!(file.lines[&9], 2);
        assert_eq!(file.functions["I.go"], (3, 4));
        assert_eq!(
            file.branches[&(9, 0)],
            [("hit".into(), 1), ("miss".into(), 1)]
        );
        assert_eq!(
            file.branches[&(5, 0)],
            [("true".into(), 4), ("false".into(), 0)]
        );
    }

    #[test]
    fn counts_of_a_changed_file_are_dropped() {
        let mut file = Tracefile::parse(TEXT).expect("a valid file");
        let new = "SF:a.p4\nVER:00000002\nDA:7,1\nend_of_record\n";
        let new = Tracefile::parse(new).expect("a valid file");
        assert_eq!(file.merge(new.clone()), ["a.p4"]);
        assert_eq!(file, new);
    }

    #[test]
    fn malformed_lines_are_named() {
        for (text, line) in [
            ("hello", 1),
            ("SF:a\nDA:1", 2),
            ("SF:a\nDA:x,1", 2),
            ("SF:a\nBRDA:1,2,3", 2),
            ("DA:1,1", 1),
            ("SF:a\nend_of_record\nDA:1,1", 3),
        ] {
            let error = Tracefile::parse(text).expect_err("a malformed file");
            assert_eq!(error.line, line, "{text}");
            assert!(error.to_string().contains("remove the file"));
        }
    }
}
