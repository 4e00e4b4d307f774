// SPDX-License-Identifier: Apache-2.0
//! Each command does what it says.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use softswitch_cli::execute::execute;
use softswitch_cli::registry::COMMANDS;
use softswitch_cli::session::Session;

use crate::common::{TestSwitch, ok, program};

/// A session that records which commands it has executed.
struct Transcript {
    session: Session,
    used: BTreeSet<String>,
}

impl Transcript {
    /// Executes a command; returns its text.
    fn text(&mut self, line: &str) -> String {
        self.used.extend(line.split(' ').next().map(str::to_owned));
        ok(&mut self.session, line).render(false)
    }

    /// Executes a command; returns its data.
    fn data(&mut self, line: &str) -> Value {
        self.text(line);
        ok(&mut self.session, line)
            .data
            .unwrap_or_else(|| panic!("{line}: no data"))
    }
}

#[test]
fn each_command_has_its_effect() {
    let (_switch, session) = TestSwitch::with_features();
    let mut t = Transcript {
        session,
        used: ["load_new_config_file", "swap_configs"]
            .map(str::to_owned)
            .into(),
    };
    program_commands(&mut t);
    table_commands(&mut t);
    profile_commands(&mut t);
    array_commands(&mut t);
    replication_commands(&mut t);
    value_set_commands(&mut t);
    state_commands(&mut t);
    let offered = COMMANDS.iter().filter(|command| command.is_offered);
    let unused: Vec<&str> = offered
        .map(|c| c.name)
        .filter(|name| !t.used.contains(*name))
        .collect();
    assert!(unused.is_empty(), "not tested: {unused:?}");
}

fn program_commands(t: &mut Transcript) {
    assert_eq!(t.text("greet"), "hello");
    assert!(
        t.text("help table_add")
            .contains("=> [action parameters] [priority]")
    );
    assert_eq!(t.data("help").as_array().unwrap().len(), COMMANDS.len());
    t.text("shell true");
    let tables = t.text("show_tables");
    assert!(tables.contains("FeaturesIngress.routes"), "{tables}");
    assert!(
        tables.contains("[implementation=None, mk=hdr.ipv4.dst(lpm, 32)]"),
        "{tables}"
    );
    assert!(t.text("show_actions").contains("FeaturesIngress.route"));
    assert!(t.text("show_pvs").contains("ip_types"));
    assert!(t.text("table_info routes").contains("dst(48),\tport(9)"));
    assert_eq!(
        t.data("table_show_actions routes")
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let info = t.data("switch_info");
    assert_eq!(
        (&info["device_id"], &info["has_program"]),
        (&json!(0), &json!(true))
    );
}

fn table_commands(t: &mut Transcript) {
    assert_eq!(
        t.text("table_add routes route 10.0.1.0/24 => 00:00:00:00:01:01 3"),
        "Entry has been added with handle 0"
    );
    t.text("table_add routes route_drop 10.0.2.9/24 =>");
    let dump = t.text("table_dump routes");
    assert!(
        dump.contains(
            "Dumping entry 0x0\nMatch key:\n* hdr.ipv4.dst        : LPM       0a000100/24\n"
        ),
        "{dump}"
    );
    assert!(
        dump.contains("Action entry: FeaturesIngress.route - 000000000101, 0003"),
        "{dump}"
    );
    assert!(
        dump.contains("0a000200/24"),
        "bits beyond the prefix are cleared: {dump}"
    );
    assert!(
        dump.contains("Dumping default entry\nAction entry: FeaturesIngress.route_drop - "),
        "{dump}"
    );
    t.text("table_modify routes route 1 00:00:00:00:00:07 4");
    let entry = t.data("table_dump_entry routes 1");
    assert_eq!(
        entry["action"],
        json!({"action": "FeaturesIngress.route", "data": ["0x000000000007", "0x0004"]})
    );
    assert_eq!(
        t.data("table_dump_entry_from_key routes 10.0.2.0/24")["handle"],
        json!(1)
    );
    t.text("table_delete routes 0");
    assert_eq!(t.text("table_num_entries routes"), "1");
    t.text("table_set_default routes route 00:00:00:00:00:01 9");
    assert!(
        t.text("table_dump routes")
            .contains("Dumping default entry\nAction entry: FeaturesIngress.route - ")
    );
    t.text("table_reset_default routes");
    assert!(
        t.text("table_dump routes")
            .contains("Dumping default entry\nAction entry: FeaturesIngress.route_drop - ")
    );

    t.text("table_add acl set_class 10.0.0.0&&&255.0.0.0 0->100 6 => 5 10");
    t.text("table_add acl drop 0&&&0 5->5 0&&&0 => 20");
    let entries = t.data("table_dump acl")["entries"].clone();
    assert_eq!(entries[0]["priority"], json!(10));
    assert_eq!(
        entries[1]["key"][1],
        json!({"field": "hdr.ipv4.len", "match": "range", "low": "0x0005", "high": "0x0005"})
    );

    t.text("table_add seen NoAction 00:00:00:00:00:05 =>");
    t.text("table_set_timeout seen 0 60000");
    assert!(t.text("table_dump seen").contains("timeout is 60000ms"));
    t.text("table_clear seen");
    assert_eq!(t.text("table_num_entries seen"), "0");
}

fn profile_commands(t: &mut Transcript) {
    let balancer = "FeaturesIngress.balancer";
    assert_eq!(
        t.text("act_prof_create_member balancer forward 3"),
        "Member has been created with handle 0"
    );
    t.text("table_indirect_create_member spread drop");
    t.text("act_prof_modify_member balancer forward 1 4");
    assert_eq!(
        t.data("act_prof_dump_member balancer 1")["data"],
        json!(["0x0004"])
    );
    t.text("table_indirect_modify_member spread forward 1 5");
    assert_eq!(
        t.data("table_dump_member spread 1")["data"],
        json!(["0x0005"])
    );

    assert_eq!(
        t.text("act_prof_create_group balancer"),
        "Group has been created with handle 0"
    );
    t.text("act_prof_add_member_to_group balancer 0 0");
    t.text("table_indirect_add_member_to_group spread 1 0");
    assert_eq!(
        t.data("act_prof_dump_group balancer 0"),
        json!({"handle": 0, "members": [0, 1]})
    );
    t.text("table_indirect_remove_member_from_group spread 0 0");
    assert_eq!(
        t.text("table_dump_group spread 0"),
        "Dumping group 0\nMembers: [1]"
    );
    t.text("act_prof_remove_member_from_group balancer 1 0");
    t.text("act_prof_add_member_to_group balancer 1 0");

    t.text("table_indirect_add spread 1 => 0");
    t.text("table_indirect_add_with_group spread 2 => 0");
    let dump = t.text("table_dump spread");
    assert!(
        dump.contains("Index: member(0)") && dump.contains("Index: group(0)"),
        "{dump}"
    );
    assert!(
        dump.contains("MEMBERS") && dump.contains("GROUPS"),
        "{dump}"
    );
    assert_eq!(t.data("act_prof_dump balancer")["name"], json!(balancer));
    t.text("table_indirect_delete spread 0");
    t.text("table_indirect_delete spread 1");
    t.text("table_indirect_create_group spread");
    t.text("table_indirect_delete_group spread 1");
    t.text("act_prof_delete_group balancer 0");
    t.text("act_prof_delete_member balancer 0");
    t.text("table_indirect_delete_member spread 1");
    assert_eq!(t.data("act_prof_dump balancer")["members"], json!([]));
    default_member_commands(t);
}

/// The default action of a table with a selector is constant in v1model, so the server refuses to change it.
fn default_member_commands(t: &mut Transcript) {
    for line in [
        "table_indirect_set_default spread 0",
        "table_indirect_set_default_with_group spread 0",
    ] {
        t.used.extend(line.split(' ').next().map(str::to_owned));
        let result = execute(&mut t.session, line).unwrap();
        let error = result
            .expect_err("the default action is constant")
            .to_string();
        assert!(
            error.starts_with(line.split(' ').next().unwrap()),
            "{error}"
        );
    }
    t.text("table_indirect_reset_default routes");
}

fn array_commands(t: &mut Transcript) {
    t.text("counter_write port_counter 5 3 400");
    assert_eq!(
        t.text("counter_read port_counter 5"),
        "FeaturesIngress.port_counter[5]= (400 bytes, 3 packets)"
    );
    t.text("counter_reset port_counter");
    assert_eq!(t.data("counter_read port_counter 5")["packets"], json!(0));
    // The entry of table_commands, by its handle.
    t.text("counter_write route_counter 1 7 70");
    assert_eq!(t.data("counter_read route_counter 1")["bytes"], json!(70));
    t.text("counter_reset route_counter");
    assert_eq!(t.data("counter_read route_counter 1")["bytes"], json!(0));

    assert_eq!(t.data("meter_get_rates port_meter 3")["rates"], json!([]));
    t.text("meter_set_rates port_meter 3 0.001:10 0.002:20");
    assert_eq!(
        t.text("meter_get_rates port_meter 3"),
        "0: info rate = 0.001, burst size = 10\n1: info rate = 0.002, burst size = 20"
    );
    t.text("meter_array_set_rates port_meter 1:5 2:6");
    assert_eq!(
        t.data("meter_get_rates port_meter 15")["rates"][1]["burst"],
        json!(6)
    );
    t.text("meter_set_rates route_meter 1 0.5:100 1:200");
    assert_eq!(
        t.data("meter_get_rates route_meter 1")["rates"][0],
        json!({"units_per_microsecond": 0.5, "burst": 100})
    );
    t.text("table_modify routes route 1 00:00:00:00:00:08 5");
    let rates = t.data("meter_get_rates route_meter 1")["rates"].clone();
    assert_eq!(
        rates[0]["burst"],
        json!(100),
        "a changed entry keeps its rates"
    );

    t.text("register_write scratch 7 0xffffffff");
    assert_eq!(
        t.text("register_read scratch 7"),
        "FeaturesIngress.scratch[7]= 4294967295"
    );
    assert_eq!(
        t.data("register_read scratch")["cells"]
            .as_array()
            .unwrap()
            .len(),
        128
    );
    t.text("register_reset scratch");
    assert_eq!(
        t.data("register_read scratch 7")["cells"],
        json!([{"index": 7, "value": 0}])
    );
}

fn replication_commands(t: &mut Transcript) {
    t.text("mirroring_add 5 3");
    t.text("mirroring_add 5 4");
    assert_eq!(
        t.data("mirroring_get 5")["replicas"],
        json!([{"port": 4, "replication_id": 0}])
    );
    t.text("mirroring_delete 5");

    t.text("mc_mgrp_create 1");
    assert_eq!(
        t.text("mc_node_create 9 2 300"),
        "node was created with handle 0"
    );
    t.text("mc_node_associate 1 0");
    t.text("mc_node_create 8 5");
    t.text("mc_node_associate 1 1");
    let dump = t.text("mc_dump");
    assert!(
        dump.contains(
            "mgrp(1)\n  -> (L1h=0, rid=9) -> (ports=[2, 300], lags=[])\n  -> (L1h=1, rid=8)"
        ),
        "{dump}"
    );
    t.text("mc_node_update 0 6");
    assert_eq!(t.data("mc_dump")[0]["nodes"][0]["ports"], json!([6]));
    t.text("mc_node_dissociate 1 1");
    t.text("mc_node_destroy 0");
    assert_eq!(t.data("mc_dump"), json!([{"group": 1, "nodes": []}]));
    t.text("mc_mgrp_destroy 1");
    assert_eq!(t.data("mc_dump"), json!([]));
}

fn value_set_commands(t: &mut Transcript) {
    t.text("pvs_add ip_types 0x88f7");
    t.text("pvs_add ip_types 2");
    t.text("pvs_add ip_types 2");
    assert_eq!(
        t.data("pvs_get ip_types"),
        json!({"values": ["0x88f7", "0x0002"]})
    );
    t.text("pvs_remove ip_types 0x88f7");
    assert_eq!(t.text("pvs_get ip_types"), "0002");
    t.text("pvs_clear ip_types");
    assert_eq!(t.text("pvs_get ip_types"), "");
}

fn state_commands(t: &mut Transcript) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("program.json");
    t.text(&format!("write_config_to_file {}", file.display()));
    let written = std::fs::read(&file).unwrap();
    assert_eq!(written, std::fs::read(program("features.json")).unwrap());
    t.text("reset_state");
    assert_eq!(t.text("table_num_entries routes"), "0");
}

#[test]
fn p4info_beside_the_program_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("features.json");
    std::fs::copy(program("features.json"), &json).unwrap();
    let switch = TestSwitch::start();
    let mut session = switch.session("");
    let load = format!("load_new_config_file {}", json.display());
    let error = execute(&mut session, &load)
        .unwrap()
        .unwrap_err()
        .to_string();
    assert!(error.contains("no P4Info beside"), "{error}");
    for name in [
        "features.p4info.txtpb",
        "features.p4.p4info.txt",
        "features_p4rt.txt",
    ] {
        let p4info = folder.path().join(name);
        std::fs::copy(program("features.p4info.txtpb"), &p4info).unwrap();
        ok(&mut session, &load);
        std::fs::remove_file(p4info).unwrap();
    }
    ok(&mut session, "swap_configs");
    ok(&mut session, "table_dump l2");
}

#[test]
fn handles_are_those_of_the_server_order_in_a_new_session() {
    let (switch, mut first) = TestSwitch::with_features();
    ok(&mut first, "table_add l2 forward 1 00:00:00:00:00:01 => 2");
    ok(&mut first, "table_add l2 forward 1 00:00:00:00:00:02 => 3");
    ok(&mut first, "table_delete l2 0");
    assert_eq!(
        ok(&mut first, "table_add l2 drop 1 00:00:00:00:00:03 =>").data,
        Some(json!({"handle": 0}))
    );
    drop(first);
    let mut second = switch.session("--election-id 2");
    let entries = ok(&mut second, "table_dump l2").data.unwrap()["entries"].clone();
    assert_eq!(
        (&entries[0]["handle"], &entries[1]["handle"]),
        (&json!(0), &json!(1))
    );
    ok(&mut second, "table_delete l2 1");
    assert_eq!(ok(&mut second, "table_num_entries l2").text, "1");
}

#[test]
fn translated_values_are_shown_as_controllers_write_them() {
    let switch = TestSwitch::start();
    let mut session = switch.session("");
    let (json, p4info) = (
        program("translated.json"),
        program("translated.p4info.txtpb"),
    );
    ok(
        &mut session,
        &format!(
            "load_new_config_file {} {}",
            json.display(),
            p4info.display()
        ),
    );
    ok(&mut session, "swap_configs");
    ok(&mut session, "table_add hops forward north => 3");
    ok(
        &mut session,
        "table_add routes set_hop 00:00:00:00:00:01 0&&&0 => north 1",
    );
    let hops = ok(&mut session, "table_dump hops").text;
    assert!(
        hops.contains(": EXACT     north\nAction entry: TranslatedIngress.forward - 00000003"),
        "{hops}"
    );
    let routes = ok(&mut session, "table_dump routes").text;
    assert!(
        routes.contains("Action entry: TranslatedIngress.set_hop - north"),
        "{routes}"
    );
}
