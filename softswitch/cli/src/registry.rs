// SPDX-License-Identifier: Apache-2.0
//! The list of commands.

use std::sync::LazyLock;

use crate::command::{Arg, Call, Command};
use crate::commands::{
    config, counters, defaults, dump, entries, general, groups, indirect, members, meters,
    mirroring, multicast, profiles, program, registers, value_sets,
};
use crate::error::{Error, Result};
use crate::output::Answer;
use crate::schema::Kind;
use crate::session::Session;

/// Returns the command with this name.
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .copied()
        .find(|command| command.name == name)
}

/// Refuses a command that P4Runtime cannot express.
fn refuse(_: &mut Session, call: &Call<'_>) -> Result<Answer> {
    Err(Error::new(call.command.about))
}

macro_rules! commands {
    ($($name:literal, $args:literal, [$($arg:ident),*], $run:path, $about:literal;)*) => {
        &[$(Command {
            name: $name,
            args: $args,
            about: $about,
            completes: &[$(Arg::Object(Kind::$arg)),*],
            is_offered: true,
            run: |session, call| $run(session, &call.args()),
        },)*]
    };
}

macro_rules! refused {
    ($($name:literal, $args:literal, $about:literal;)*) => {
        &[$(Command {
            name: $name,
            args: $args,
            about: $about,
            completes: &[],
            is_offered: false,
            run: refuse,
        },)*]
    };
}

/// Commands that P4Runtime offers.
const OFFERED: &[Command] = commands! {
    "act_prof_add_member_to_group", "<action profile> <member handle> <group handle>", [Profile],
        groups::add_member, "Add a member to a group";
    "act_prof_create_group", "<action profile>", [Profile], groups::create, "Add an empty group";
    "act_prof_create_member", "<action profile> <action> [action parameters]", [Profile, Action],
        members::create, "Add a member";
    "act_prof_delete_group", "<action profile> <group handle>", [Profile], groups::delete, "Delete a group";
    "act_prof_delete_member", "<action profile> <member handle>", [Profile], members::delete, "Delete a member";
    "act_prof_dump", "<action profile>", [Profile], profiles::dump, "Show members and groups";
    "act_prof_dump_group", "<action profile> <group handle>", [Profile], groups::dump_one, "Show a group";
    "act_prof_dump_member", "<action profile> <member handle>", [Profile], members::dump_one, "Show a member";
    "act_prof_modify_member", "<action profile> <action> <member handle> [action parameters]", [Profile, Action],
        members::modify, "Change the action of a member";
    "act_prof_remove_member_from_group", "<action profile> <member handle> <group handle>", [Profile],
        groups::remove_member, "Remove a member from a group";
    "counter_read", "<counter> <index or entry handle>", [Counter], counters::read, "Show a cell of a counter";
    "counter_reset", "<counter>", [Counter], counters::reset, "Set all cells of a counter to 0";
    "counter_write", "<counter> <index or entry handle> <packets> <bytes>", [Counter], counters::write,
        "Set a cell of a counter";
    "greet", "", [], general::greet, "Print a greeting";
    "load_new_config_file", "<BMv2 JSON> [P4Info]", [], config::load,
        "Save a program, which swap_configs starts; P4Info is beside the JSON by default";
    "mc_dump", "", [], multicast::dump, "Show multicast groups and nodes";
    "mc_mgrp_create", "<group>", [], multicast::create_group, "Add a multicast group";
    "mc_mgrp_destroy", "<group>", [], multicast::destroy_group, "Delete a multicast group";
    "mc_node_associate", "<group> <node handle>", [], multicast::associate, "Add a node to a group";
    "mc_node_create", "<replication id> <ports>", [], multicast::create_node,
        "Create a node, for mc_node_associate in the same session";
    "mc_node_destroy", "<node handle>", [], multicast::destroy_node, "Delete a node";
    "mc_node_dissociate", "<group> <node handle>", [], multicast::dissociate, "Remove a node from its group";
    "mc_node_update", "<node handle> <ports>", [], multicast::update_node, "Change the ports of a node";
    "meter_array_set_rates", "<meter> <rate>:<burst> <rate>:<burst>", [Meter], meters::set_all,
        "Set the rates of all cells of a meter";
    "meter_get_rates", "<meter> <index or entry handle>", [Meter], meters::get,
        "Show the rates of a cell, in bytes or packets per microsecond";
    "meter_set_rates", "<meter> <index or entry handle> <rate>:<burst> <rate>:<burst>", [Meter], meters::set,
        "Set the rates of a cell, in bytes or packets per microsecond; bursts are bytes or packets";
    "mirroring_add", "<session> <port>", [], mirroring::add, "Send clones of a session to a port";
    "mirroring_delete", "<session>", [], mirroring::delete, "Delete a mirroring session";
    "mirroring_get", "<session>", [], mirroring::get, "Show a mirroring session";
    "pvs_add", "<value set> <value>", [ValueSet], value_sets::add, "Add a value";
    "pvs_clear", "<value set>", [ValueSet], value_sets::clear, "Remove all values";
    "pvs_get", "<value set>", [ValueSet], value_sets::get, "Show all values";
    "pvs_remove", "<value set> <value>", [ValueSet], value_sets::remove, "Remove a value";
    "register_read", "<register> [index]", [Register], registers::read, "Show a cell or all cells of a register";
    "register_reset", "<register>", [Register], registers::reset, "Set all cells of a register to 0";
    "register_write", "<register> <index> <value>", [Register], registers::write, "Set a cell of a register";
    "reset_state", "", [], config::reset, "Set the program again, without entries and state";
    "show_actions", "", [], program::show_actions, "List the actions of the program";
    "show_pvs", "", [], program::show_value_sets, "List the parser value sets of the program";
    "show_tables", "", [], program::show_tables, "List the tables of the program";
    "swap_configs", "", [], config::swap, "Start the program that load_new_config_file saved";
    "switch_info", "", [], config::info, "Show the device id, the version of P4Runtime and the program's cookie";
    "table_add", "<table> <action> <match fields> => [action parameters] [priority]", [Table, Action], entries::add,
        "Add an entry; a priority is needed if a field is ternary, range or optional, and the lowest one wins";
    "table_clear", "<table>", [Table], entries::clear, "Delete all entries, but not the default entry";
    "table_delete", "<table> <entry handle>", [Table], entries::delete, "Delete an entry";
    "table_dump", "<table>", [Table], dump::table, "Show all entries";
    "table_dump_entry", "<table> <entry handle>", [Table], dump::entry, "Show an entry";
    "table_dump_entry_from_key", "<table> <match fields> [priority]", [Table], dump::entry_from_key,
        "Show the entry with this key";
    "table_dump_group", "<table> <group handle>", [Table], indirect::dump_group, "Show a group of the table's profile";
    "table_dump_member", "<table> <member handle>", [Table], indirect::dump_member,
        "Show a member of the table's profile";
    "table_indirect_add", "<table> <match fields> => <member handle> [priority]", [Table], indirect::add,
        "Add an entry that uses a member";
    "table_indirect_add_member_to_group", "<table> <member handle> <group handle>", [Table],
        indirect::add_member_to_group, "Like act_prof_add_member_to_group, for the table's profile";
    "table_indirect_add_with_group", "<table> <match fields> => <group handle> [priority]", [Table],
        indirect::add_with_group, "Add an entry that uses a group";
    "table_indirect_create_group", "<table>", [Table], indirect::create_group,
        "Like act_prof_create_group, for the table's profile";
    "table_indirect_create_member", "<table> <action> [action parameters]", [Table, Action], indirect::create_member,
        "Like act_prof_create_member, for the table's profile";
    "table_indirect_delete", "<table> <entry handle>", [Table], entries::delete, "Delete an entry";
    "table_indirect_delete_group", "<table> <group handle>", [Table], indirect::delete_group,
        "Like act_prof_delete_group, for the table's profile";
    "table_indirect_delete_member", "<table> <member handle>", [Table], indirect::delete_member,
        "Like act_prof_delete_member, for the table's profile";
    "table_indirect_modify_member", "<table> <action> <member handle> [action parameters]", [Table, Action],
        indirect::modify_member, "Like act_prof_modify_member, for the table's profile";
    "table_indirect_remove_member_from_group", "<table> <member handle> <group handle>", [Table],
        indirect::remove_member_from_group, "Like act_prof_remove_member_from_group, for the table's profile";
    "table_indirect_reset_default", "<table>", [Table], defaults::reset, "Restore the program's default entry";
    "table_indirect_set_default", "<table> <member handle>", [Table], indirect::set_default,
        "Let the default entry use a member";
    "table_indirect_set_default_with_group", "<table> <group handle>", [Table], indirect::set_default_with_group,
        "Let the default entry use a group";
    "table_info", "<table>", [Table], program::table_info, "Show a table and its actions";
    "table_modify", "<table> <action> <entry handle> [action parameters]", [Table, Action], entries::modify,
        "Change the action of an entry";
    "table_num_entries", "<table>", [Table], entries::count, "Show the number of entries";
    "table_reset_default", "<table>", [Table], defaults::reset, "Restore the program's default entry";
    "table_set_default", "<table> <action> [action parameters]", [Table, Action], defaults::set,
        "Set the default entry";
    "table_set_timeout", "<table> <entry handle> <milliseconds>", [Table], entries::set_timeout,
        "Set the idle time-out of an entry";
    "table_show_actions", "<table>", [Table], program::table_actions, "List the actions of a table";
    "write_config_to_file", "<file>", [], config::write_to_file, "Write the switch's program (BMv2 JSON) to a file";
};

/// Commands that need more than their arguments.
const SPECIAL: &[Command] = &[
    Command {
        name: "help",
        args: "[command]",
        about: "List the commands, or explain one",
        completes: &[Arg::Command],
        is_offered: true,
        run: |_, call| general::help(call),
    },
    Command {
        name: "shell",
        args: "<shell command>",
        about: "Run a command of the system's shell",
        completes: &[],
        is_offered: true,
        run: |_, call| general::shell(call.rest),
    },
];

/// Commands of `simple_switch_CLI` that P4Runtime cannot express.
const REFUSED: &[Command] = refused! {
    "get_time_elapsed", "", "P4Runtime does not offer the switch's clock: use Thrift (simple_switch_CLI)";
    "get_time_since_epoch", "", "P4Runtime does not offer the switch's clock: use Thrift (simple_switch_CLI)";
    "mc_set_lag_membership", "<lag index> <ports>",
        "P4Runtime has no link aggregation groups: name ports in mc_node_create, or use Thrift (simple_switch_CLI)";
    "mirroring_add_mc", "<session> <group>",
        "a clone session of P4Runtime has ports, not a group: use mirroring_add, or Thrift (simple_switch_CLI)";
    "port_add", "<interface> <port> [pcap]",
        "P4Runtime does not manage ports: use the switch's option --interface, or Thrift (simple_switch_CLI)";
    "port_remove", "<port>", "P4Runtime does not manage ports: use Thrift (simple_switch_CLI)";
    "serialize_state", "<file>",
        "P4Runtime has no format for saved state: use table_dump and the other dumps with --json";
    "set_crc16_parameters", "<name> <polynomial> <initial> <xor> <reflect data> <reflect remainder>",
        "P4Runtime does not change hash functions: use Thrift (simple_switch_CLI)";
    "set_crc32_parameters", "<name> <polynomial> <initial> <xor> <reflect data> <reflect remainder>",
        "P4Runtime does not change hash functions: use Thrift (simple_switch_CLI)";
    "set_queue_depth", "<packets> [<port> [<priority>]]",
        "P4Runtime does not manage queues: use softswitch's option --link, or Thrift (simple_switch_CLI)";
    "set_queue_rate", "<packets per second> [<port> [<priority>]]",
        "P4Runtime does not manage queues: use softswitch's option --link, or Thrift (simple_switch_CLI)";
    "set_toeplitz_hash_key", "<name> <key>",
        "P4Runtime does not change hash functions: use Thrift (simple_switch_CLI)";
    "show_ports", "", "P4Runtime does not manage ports: use Thrift (simple_switch_CLI)";
};

/// All commands, sorted by name.
pub static COMMANDS: LazyLock<Vec<&'static Command>> = LazyLock::new(|| {
    let lists = [OFFERED, SPECIAL, REFUSED];
    let mut all: Vec<&Command> = lists.into_iter().flatten().collect();
    all.sort_by_key(|command| command.name);
    all
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = COMMANDS.iter().map(|c| c.name).collect();
        names.dedup();
        assert_eq!(names.len(), COMMANDS.len());
        assert_eq!(find("table_add").unwrap().name, "table_add");
        assert!(find("table").is_none());
    }

    #[test]
    fn refusals_name_reason_and_alternative() {
        for command in REFUSED {
            let (reason, alternative) = command.about.split_once(": ").unwrap();
            assert!(reason.contains("P4Runtime"), "{}", command.name);
            assert!(
                alternative.contains("use ") || alternative.contains("name "),
                "{}",
                command.name
            );
        }
    }
}
