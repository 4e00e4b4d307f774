// SPDX-License-Identifier: Apache-2.0
//! Completion of a line: a pure function of the line and the program.

use crate::command::Arg;
use crate::registry::{self, COMMANDS};
use crate::schema::{Kind, Schema, name};

/// Returns where the word at the end of a line begins (in bytes), and the words that it may become, sorted. A word
/// begins with the text at the end of the line.
pub fn complete(line: &str, schema: &Schema) -> (usize, Vec<String>) {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (before, word) = line.split_at(start);
    let words: Vec<&str> = before.split_whitespace().collect();
    let mut candidates = match words.split_first() {
        None => commands(),
        Some((name, args)) => arguments(schema, name, args),
    };
    candidates.retain(|candidate| candidate.starts_with(word));
    candidates.sort();
    candidates.dedup();
    (start, candidates)
}

fn commands() -> Vec<String> {
    COMMANDS
        .iter()
        .map(|command| command.name.to_owned())
        .collect()
}

/// Returns the values of the argument after `args`.
fn arguments(schema: &Schema, command: &str, args: &[&str]) -> Vec<String> {
    let arg = registry::find(command).and_then(|command| command.completes.get(args.len()));
    let kind = match arg {
        None => return vec![],
        Some(Arg::Command) => return commands(),
        Some(Arg::Object(Kind::Action)) => {
            return args.last().map_or(vec![], |owner| actions(schema, owner));
        }
        Some(Arg::Object(kind)) => *kind,
    };
    let names = schema.names(kind).map(|(full, _)| full);
    names.flat_map(|full| shorter(schema, kind, full)).collect()
}

/// Returns the full name, and the last component if it is unique.
fn shorter(schema: &Schema, kind: Kind, full: &str) -> Vec<String> {
    let last = full.rsplit('.').next().unwrap_or(full);
    let mut names = vec![full.to_owned()];
    if schema.id(kind, last).is_ok() {
        names.push(last.to_owned());
    }
    names
}

/// Returns the actions of a table or an action profile.
fn actions(schema: &Schema, owner: &str) -> Vec<String> {
    let table = match schema.id(Kind::Table, owner) {
        Ok(id) => Some(id),
        Err(_) => schema.id(Kind::Profile, owner).ok().and_then(|id| {
            let profile = schema.profile(id)?;
            profile.table_ids.first().copied()
        }),
    };
    let Some(table) = table.and_then(|id| schema.table(id)) else {
        return vec![];
    };
    let actions = schema.actions_of(table);
    let names = actions.into_iter().map(|action| name(&action.preamble));
    names
        .flat_map(|full| shorter(schema, Kind::Action, full))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::tests::example;

    fn words(line: &str) -> Vec<String> {
        complete(line, &example()).1
    }

    #[test]
    fn completes_commands() {
        assert_eq!(words("table_set_d"), ["table_set_default"]);
        assert_eq!(
            complete("  help greet", &example()),
            (7, vec!["greet".to_owned()])
        );
        assert_eq!(words("").len(), COMMANDS.len());
        assert!(words("nothing").is_empty());
    }

    #[test]
    fn completes_names_of_the_kind_that_the_command_takes() {
        assert_eq!(words("table_dump "), ["A.x", "B.x", "B.y", "y"]);
        assert_eq!(words("table_dump B"), ["B.x", "B.y"]);
        assert_eq!(words("counter_read p"), ["packets"]);
        assert!(words("counter_read packets ").is_empty());
        assert!(words("register_read ").is_empty());
        assert!(words("unknown ").is_empty());
    }

    #[test]
    fn completes_actions_of_the_table() {
        assert_eq!(words("table_add y "), ["B.go", "go"]);
        assert!(words("table_add A.x ").is_empty());
        assert!(words("table_add nothing ").is_empty());
    }
}
