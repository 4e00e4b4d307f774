// SPDX-License-Identifier: Apache-2.0
//! Bad input of each command: the error names command, fault and fix, and nothing changes.

use std::collections::BTreeSet;

use softswitch_cli::registry::COMMANDS;
use softswitch_cli::session::Session;

use crate::common::{TestSwitch, ok, refused};

/// Lines, and what the error must contain.
const BAD: &[(&str, &str)] = &[
    ("nosuch", "unknown command \"nosuch\": help lists"),
    (
        "act_prof_add_member_to_group balancer 0",
        "use act_prof_add_member_to_group <action profile>",
    ),
    (
        "act_prof_add_member_to_group balancer 0 0",
        "already has this member",
    ),
    ("act_prof_add_member_to_group balancer 7 0", "NotFound"),
    (
        "act_prof_add_member_to_group balancer 0 9",
        "unknown group handle 9",
    ),
    ("act_prof_create_group", "wrong number of arguments"),
    (
        "act_prof_create_group nosuch",
        "unknown action profile \"nosuch\": use FeaturesIngress.balancer",
    ),
    (
        "act_prof_create_member balancer nosuch",
        "unknown action \"nosuch\"",
    ),
    (
        "act_prof_create_member balancer route 1 2",
        "has no action \"route\"",
    ),
    (
        "act_prof_create_member balancer forward",
        "0 action parameters: FeaturesIngress.forward needs 1 (port)",
    ),
    (
        "act_prof_create_member balancer forward 512",
        "must fit 9 bits",
    ),
    (
        "act_prof_delete_group balancer x",
        "invalid group handle \"x\"",
    ),
    ("act_prof_delete_group balancer 5", "NotFound"),
    ("act_prof_delete_member balancer 4294967295", "use at most"),
    ("act_prof_delete_member balancer 5", "NotFound"),
    ("act_prof_dump", "wrong number of arguments"),
    ("act_prof_dump_group balancer 5", "unknown group handle 5"),
    ("act_prof_dump_member balancer 5", "unknown member handle 5"),
    ("act_prof_modify_member balancer forward 5 1", "NotFound"),
    (
        "act_prof_modify_member balancer forward x 1",
        "invalid member handle",
    ),
    (
        "act_prof_remove_member_from_group balancer 5 0",
        "does not have this member",
    ),
    ("counter_read nosuch 1", "unknown counter"),
    ("counter_read port_counter x", "invalid index"),
    ("counter_read port_counter 64", "64"),
    (
        "counter_read route_counter 5",
        "unknown entry handle 5: table_dump",
    ),
    ("counter_reset", "wrong number of arguments"),
    ("counter_reset nosuch", "unknown counter"),
    ("counter_write port_counter 64 1 1", "64"),
    (
        "counter_write port_counter 1 x 1",
        "invalid number of packets",
    ),
    ("greet all", "wrong number of arguments"),
    ("help nosuch", "unknown command"),
    (
        "load_new_config_file /nosuch.json /nosuch.txtpb",
        "cannot read /nosuch.json",
    ),
    ("load_new_config_file", "wrong number of arguments"),
    (
        "load_new_config_file /etc/hostname /etc/hostname",
        "not JSON",
    ),
    ("mc_dump all", "wrong number of arguments"),
    ("mc_mgrp_create 0", "multicast group 0"),
    ("mc_mgrp_create 1", "AlreadyExists"),
    ("mc_mgrp_destroy 2", "NotFound"),
    ("mc_node_associate 2 0", "associated with group 1"),
    ("mc_node_associate 1 7", "unknown node handle 7"),
    ("mc_node_create x 1", "invalid replication id"),
    ("mc_node_create 70000 1", "invalid replication id"),
    ("mc_node_create 1 1 1", "port 1 occurs twice"),
    ("mc_node_create 1 1 | 2", "no link aggregation groups"),
    ("mc_node_destroy 7", "unknown node handle 7"),
    ("mc_node_dissociate 2 0", "not associated with group 2"),
    ("mc_node_update 7 1", "unknown node handle 7"),
    (
        "meter_array_set_rates route_meter 1:1 1:1",
        "use meter_set_rates for each entry",
    ),
    (
        "meter_array_set_rates port_meter 1:1",
        "1 rates: meters of P4Runtime have two",
    ),
    ("meter_get_rates nosuch 1", "unknown meter"),
    ("meter_get_rates port_meter 16", "16"),
    ("meter_set_rates port_meter 1 1:1 1", "invalid rate \"1\""),
    ("meter_set_rates port_meter 16 1:1 1:1", "16"),
    ("mirroring_add 0 1", "session 0"),
    ("mirroring_add 5 x", "invalid port"),
    ("mirroring_delete 7", "NotFound"),
    ("mirroring_get 7", "unknown mirroring session 7"),
    ("pvs_add ip_types 0x10000", "must fit 16 bits"),
    ("pvs_clear nosuch", "unknown parser value set"),
    ("pvs_get", "wrong number of arguments"),
    ("pvs_remove ip_types x", "invalid value"),
    ("register_read scratch 128", "128"),
    ("register_read scratch x", "invalid index"),
    ("register_reset nosuch", "unknown register"),
    ("register_write scratch 0 0x100000000", "must fit 32 bits"),
    ("register_write scratch 128 0", "128"),
    ("reset_state all", "wrong number of arguments"),
    ("shell", "wrong number of arguments"),
    ("shell exit 3", "failed"),
    ("show_actions all", "wrong number of arguments"),
    ("show_pvs all", "wrong number of arguments"),
    ("show_tables all", "wrong number of arguments"),
    ("swap_configs", "missing saved config"),
    ("switch_info all", "wrong number of arguments"),
    ("table_add", "use table_add <table> <action>"),
    (
        "table_add nosuch drop 1 =>",
        "unknown table \"nosuch\": use FeaturesIngress.acl",
    ),
    (
        "table_add l2 route 1 2 => 1 1",
        "has no action \"route\": use FeaturesIngress.drop",
    ),
    (
        "table_add l2 drop 1 =>",
        "1 match fields: table FeaturesIngress.l2 needs 2",
    ),
    (
        "table_add l2 drop 512 2 =>",
        "match field std.ingress_port: \"512\" is too large: it must fit 9 bits",
    ),
    ("table_add l2 drop 1 2 => 3", "1 action parameters"),
    (
        "table_add l2 forward 1 00:00:00:00:00:01 => 2",
        "AlreadyExists",
    ),
    (
        "table_add acl drop 1&&&1 1->2 3 => x",
        "invalid priority \"x\"",
    ),
    (
        "table_add acl drop 1&&&1 2->1 3 => 1",
        "range 2->1 is empty",
    ),
    ("table_add acl drop 1 1->2 3 => 1", "use VALUE&&&MASK"),
    (
        "table_add routes route_drop 10.0.0.0 =>",
        "use VALUE/LENGTH",
    ),
    ("table_add constant set_class 5 => 1", "constant"),
    ("table_clear nosuch", "unknown table"),
    ("table_clear", "wrong number of arguments"),
    ("table_delete l2 9", "unknown entry handle 9: table_dump"),
    ("table_delete l2 x", "invalid entry handle"),
    ("table_dump nosuch", "unknown table"),
    ("table_dump_entry l2 9", "unknown entry handle 9"),
    ("table_dump_entry_from_key l2 1 9", "unknown key"),
    ("table_dump_entry_from_key acl", "missing priority"),
    ("table_dump_group l2 0", "has no action profile"),
    ("table_dump_member spread 9", "unknown member handle 9"),
    ("table_indirect_add spread 1 => 9", "NotFound"),
    ("table_indirect_add spread 1 0", "wrong number of arguments"),
    ("table_indirect_add l2 1 2 => 0", "has no action profile"),
    (
        "table_indirect_add_member_to_group l2 0 0",
        "has no action profile",
    ),
    ("table_indirect_add_with_group spread 1 => 9", "NotFound"),
    ("table_indirect_create_group l2", "has no action profile"),
    (
        "table_indirect_create_member l2 drop",
        "has no action profile",
    ),
    ("table_indirect_delete spread 9", "unknown entry handle 9"),
    ("table_indirect_delete_group spread 9", "NotFound"),
    ("table_indirect_delete_member spread 9", "NotFound"),
    ("table_indirect_modify_member spread drop 9", "NotFound"),
    (
        "table_indirect_remove_member_from_group spread 9 0",
        "does not have this member",
    ),
    ("table_indirect_reset_default nosuch", "unknown table"),
    ("table_indirect_set_default l2 0", "has no action profile"),
    (
        "table_indirect_set_default_with_group spread x",
        "invalid group handle",
    ),
    ("table_info nosuch", "unknown table"),
    ("table_modify l2 forward 9 1", "unknown entry handle 9"),
    ("table_modify l2 forward 0", "0 action parameters"),
    ("table_num_entries nosuch", "unknown table"),
    ("table_reset_default nosuch", "unknown table"),
    ("table_set_default l2 drop", "constant"),
    ("table_set_default routes nosuch", "unknown action"),
    ("table_set_timeout l2 0 5", "has no idle time-outs"),
    ("table_set_timeout seen 0 x", "invalid time-out"),
    ("table_show_actions nosuch", "unknown table"),
    (
        "write_config_to_file /nosuch/file",
        "cannot write /nosuch/file",
    ),
    // P4Runtime cannot express these.
    ("get_time_elapsed", "use Thrift"),
    ("get_time_since_epoch", "use Thrift"),
    ("mc_set_lag_membership 1 1", "no link aggregation groups"),
    ("mirroring_add_mc 1 1", "use mirroring_add"),
    ("port_add veth1 1", "--interface"),
    ("port_remove 1", "use Thrift"),
    ("serialize_state x", "table_dump"),
    ("set_crc16_parameters c 1 2 3 true true", "use Thrift"),
    ("set_crc32_parameters c 1 2 3 true true", "use Thrift"),
    ("set_queue_depth 1", "--link"),
    ("set_queue_rate 1", "--link"),
    ("set_toeplitz_hash_key h 00", "use Thrift"),
    ("show_ports", "use Thrift"),
];

/// Puts one of each into the switch.
fn fill(session: &mut Session) {
    for line in [
        "table_add l2 forward 1 00:00:00:00:00:01 => 2",
        "table_add acl set_class 10.0.0.0&&&255.0.0.0 0->100 6 => 5 10",
        "table_add seen NoAction 5 =>",
        "act_prof_create_member balancer forward 3",
        "act_prof_create_group balancer",
        "act_prof_add_member_to_group balancer 0 0",
        "pvs_add ip_types 5",
        "mc_mgrp_create 1",
        "mc_node_create 0 1 2",
        "mc_node_associate 1 0",
        "mirroring_add 5 3",
        "register_write scratch 1 5",
        "counter_write port_counter 1 2 3",
        "meter_set_rates port_meter 1 1:2 3:4",
    ] {
        ok(session, line);
    }
}

/// Returns all state that commands can change.
fn state(session: &mut Session) -> Vec<String> {
    let tables =
        ["l2", "routes", "acl", "spread", "constant"].map(|table| format!("table_dump {table}"));
    let others = [
        "table_num_entries seen",
        "act_prof_dump balancer",
        "mc_dump",
        "mirroring_get 5",
        "pvs_get ip_types",
        "register_read scratch",
        "counter_read port_counter 1",
        "meter_get_rates port_meter 1",
    ];
    let lines = tables.into_iter().chain(others.map(str::to_owned));
    lines.map(|line| ok(session, &line).text).collect()
}

#[test]
fn bad_input_of_each_command_changes_nothing() {
    let (_switch, mut session) = TestSwitch::with_features();
    fill(&mut session);
    let before = state(&mut session);
    for (line, expected) in BAD {
        let error = refused(&mut session, line);
        assert!(error.contains(expected), "{line}: {error}");
        let command = line.split(' ').next().unwrap();
        assert!(
            error.starts_with(command) || *line == "nosuch",
            "{line}: {error}"
        );
        assert_eq!(state(&mut session), before, "{line}");
    }
    let tested: BTreeSet<&str> = BAD
        .iter()
        .filter_map(|(line, _)| line.split(' ').next())
        .collect();
    let untested: Vec<&str> = COMMANDS
        .iter()
        .map(|c| c.name)
        .filter(|name| !tested.contains(name))
        .collect();
    assert!(untested.is_empty(), "not tested: {untested:?}");
}

#[test]
fn switch_without_program_names_the_remedy() {
    let switch = TestSwitch::start();
    let mut session = switch.session("");
    for line in ["table_dump t", "counter_read c 1", "register_read r 1"] {
        assert!(
            refused(&mut session, line).contains("load_new_config_file"),
            "{line}"
        );
    }
    assert!(refused(&mut session, "reset_state").contains("no program"));
    assert_eq!(ok(&mut session, "show_tables").text, "");
}
