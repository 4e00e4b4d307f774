// SPDX-License-Identifier: Apache-2.0
//! Make rules of a program's dependencies: the options `-M`, `-MD`, `-MF`, `-MG`, `-MP`, `-MT` and `-MQ` of GCC.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;

/// Options of dependencies.
#[derive(Args)]
#[command(next_help_heading = "Dependencies (-M, -MF and so on are accepted, too)")]
pub struct Dependencies {
    /// Print a make rule with the files that the program includes, and do not compile.
    #[arg(long = "M")]
    pub only: bool,

    /// Also write the make rule while compiling, to --MF or the program's name with .d.
    #[arg(long = "MD")]
    pub also: bool,

    /// Write the make rule to this file.
    #[arg(long = "MF", value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Accept missing included files in the make rule.
    #[arg(long = "MG", requires = "only")]
    pub accept_missing: bool,

    /// Add a rule without a recipe for each included file.
    #[arg(long = "MP")]
    phony: bool,

    /// Target of the make rule [default: the program's name with .o]
    #[arg(long = "MT", value_name = "TARGET")]
    rule_target: Vec<String>,

    /// Target of the make rule, quoted for make.
    #[arg(long = "MQ", value_name = "TARGET")]
    quoted_rule_target: Vec<String>,
}

impl Dependencies {
    /// Returns the make rule of a program and the files that it includes.
    pub fn rule(&self, program: &Path, included: &[String]) -> String {
        let quoted = self.quoted_rule_target.iter().map(|t| quote(t));
        let mut targets: Vec<String> = self.rule_target.iter().cloned().chain(quoted).collect();
        if targets.is_empty() {
            let name = super::file_name(program, "o");
            targets.push(quote(&name.to_string_lossy()));
        }
        let mut rule = format!(
            "{}: {}",
            targets.join(" "),
            quote(&program.to_string_lossy())
        );
        for file in included {
            // Writing to a String cannot fail.
            let _ = write!(rule, " \\\n {}", quote(file));
        }
        rule.push('\n');
        for file in included.iter().filter(|_| self.phony) {
            let _ = write!(rule, "\n{}:\n", quote(file));
        }
        rule
    }
}

/// Quotes a file's name for make.
fn quote(name: &str) -> String {
    name.replace('$', "$$")
        .replace(' ', "\\ ")
        .replace('#', "\\#")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        dependencies: Dependencies,
    }

    fn rule(args: &[&str]) -> String {
        let args = std::iter::once(&"p4c").chain(args);
        let only = Only::parse_from(args).dependencies;
        only.rule(Path::new("dir/a b.p4"), &["x.p4".into()])
    }

    #[test]
    fn rules_name_target_and_files() {
        assert_eq!(rule(&["--M"]), "a\\ b.o: dir/a\\ b.p4 \\\n x.p4\n");
        assert_eq!(
            rule(&["--M", "--MT", "$(o)", "--MQ", "$o", "--MP"]),
            "$(o) $$o: dir/a\\ b.p4 \\\n x.p4\n\nx.p4:\n"
        );
    }
}
