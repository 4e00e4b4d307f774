// SPDX-License-Identifier: Apache-2.0
//! The page about the program lists each command.

use softswitch_cli::command::Command;
use softswitch_cli::registry::COMMANDS;

/// Returns a row of the table of commands.
fn row(command: &Command) -> String {
    format!("| `{}` | {} |\n", command.usage(), command.about)
}

#[test]
fn page_lists_the_commands() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/softswitch-cli.md");
    let page = std::fs::read_to_string(page).unwrap();
    for is_offered in [true, false] {
        let commands = COMMANDS
            .iter()
            .filter(|command| command.is_offered == is_offered);
        let rows: String = commands.map(|command| row(command)).collect();
        assert!(
            page.contains(&rows),
            "the page must contain this table:\n{rows}"
        );
    }
}
