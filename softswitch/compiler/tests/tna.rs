// SPDX-License-Identifier: Apache-2.0
//! TNA and T2NA: their package, the names of their blocks, and their tables.

#[path = "common/tna.rs"]
mod frame;

use frame::{Parts, ingress, list, named, names};
use serde_json::Value;

#[test]
fn architecture_is_that_of_the_definitions() {
    for architecture in ["tna", "t2na"] {
        let parts = Parts {
            architecture: Some(architecture),
            ..Parts::default()
        };
        let output = parts.output();
        assert_eq!(
            output.json.unwrap()["__meta__"]["architecture"],
            architecture
        );
        let arch = format!("arch: \"{architecture}\"");
        assert!(output.p4info.contains(&arch), "{}", output.p4info);
    }
}

#[test]
fn blocks_and_intrinsic_metadata_have_fixed_names() {
    let json = Parts::default().json();
    assert_eq!(names(&json, "parsers"), ["ingress_parser", "egress_parser"]);
    assert_eq!(names(&json, "pipelines"), ["ingress", "egress"]);
    assert_eq!(
        names(&json, "deparsers"),
        ["ingress_deparser", "egress_deparser"]
    );
    for (name, is_metadata) in [
        ("ig_intr_md", false),
        ("ig_intr_md_from_prsr", true),
        ("ig_intr_md_for_dprsr", true),
        ("ig_intr_md_for_tm", true),
        ("eg_intr_md", false),
        ("eg_intr_md_from_prsr", true),
        ("eg_intr_md_for_dprsr", true),
        ("eg_intr_md_for_oport", true),
        ("h", false),
        ("egress.h", false),
    ] {
        assert_eq!(
            named(&json, "headers", name)["metadata"],
            is_metadata,
            "{name}"
        );
    }
}

/// Ingress with a table and a register.
const PIPES: [&str; 2] = [
    "Register<bit<32>, bit<4>>(16) counts;
     action set(bit<8> value) { hdr.h.b = value; }
     table steps { key = { hdr.h.a : exact; } actions = { set; NoAction; } default_action = NoAction(); }",
    "counts.write(0, 1); steps.apply();",
];

#[test]
fn names_of_several_pipelines_begin_with_that_of_the_pipeline() {
    let json = Parts {
        ingress: PIPES,
        main: Some(
            "Pipeline(IP(), I(), ID(), EP(), E(), ED()) p0; Pipeline(IP(), I(), ID(), EP(), E(), ED()) p1;
             Switch(p0, p1, p0) main;",
        ),
        ..Parts::default()
    }
    .json();
    assert_eq!(
        json["__meta__"]["pipes"],
        serde_json::json!(["p0", "p1", "p0"])
    );
    let controls = ["p0.ingress", "p0.egress", "p1.ingress", "p1.egress"];
    assert_eq!(names(&json, "pipelines"), controls);
    assert_eq!(
        names(&json, "parsers")[2..],
        ["p1.ingress_parser", "p1.egress_parser"]
    );
    let registers = names(&json, "register_arrays");
    assert_eq!(registers, ["p0.I.counts", "p1.I.counts"]);
    for name in ["p0.I.set", "p1.I.set"] {
        named(&json, "actions", name);
    }
}

#[test]
fn same_pipeline_for_several_pipes_is_a_single_one() {
    let json = Parts {
        ingress: PIPES,
        main: Some("Pipeline(IP(), I(), ID(), EP(), E(), ED()) p; Switch(p, p) main;"),
        ..Parts::default()
    }
    .json();
    assert_eq!(names(&json, "pipelines"), ["ingress", "egress"]);
    assert_eq!(names(&json, "register_arrays"), ["I.counts"]);
    assert_eq!(json["__meta__"].get("pipes"), None);
}

#[test]
fn other_packages_are_rejected() {
    let parts = |main| Parts {
        main: Some(main),
        ..Parts::default()
    };
    parts("Pipeline(IP(), I(), ID(), EP(), E(), ED()) a; Switch(a, Pipeline(IP(), I(), ID(), EP(), E(), ED())) main;")
        .rejected("this pipeline has no name, and the program has several");
    parts("package Other(bit<8> x); Other(1) main;").rejected("unsupported package Other");
}

/// A register, a ghost thread that writes it, and an ingress that reads it.
const GHOST: &str = "Register<bit<32>, bit<8>>(16) lengths;
    control G(in ghost_intrinsic_metadata_t g) {
        RegisterAction<bit<32>, bit<8>, bit<32>>(lengths) set = { void apply(inout bit<32> value) { value = (bit<32>) g.qlength; } };
        apply { set.execute(g.qid[7:0]); }
    }
    control GI(inout H hdr, inout M md, in ingress_intrinsic_metadata_t intr,
        in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
        inout ingress_intrinsic_metadata_for_tm_t tm, in ghost_intrinsic_metadata_t g) {
        apply { hdr.h.d = lengths.read(hdr.h.a ^ (bit<8>) g.ping_pong); }
    }";

#[test]
fn ghost_thread_shares_registers_with_ingress() {
    let main = format!(
        "{GHOST} Pipeline(IP(), GI(), ID(), EP(), E(), ED(), G()) pipe; Switch(pipe) main;"
    );
    let json = Parts {
        architecture: Some("t2na"),
        main: Some(&main),
        ..Parts::default()
    }
    .json();
    assert_eq!(names(&json, "pipelines"), ["ingress", "egress", "ghost"]);
    assert_eq!(names(&json, "register_arrays"), ["lengths"]);
    named(&json, "headers", "gh_intr_md");
}

#[test]
fn ghost_thread_does_not_share_registers_with_egress() {
    let main = format!(
        "{GHOST}
         control GE(inout EH hdr, inout EM md, in egress_intrinsic_metadata_t intr,
             in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
             inout egress_intrinsic_metadata_for_output_port_t oport) {{
             apply {{ hdr.h.d = lengths.read(hdr.h.a); }}
         }}
         Pipeline(IP(), I(), ID(), EP(), GE(), ED(), G()) pipe; Switch(pipe) main;"
    );
    Parts {
        architecture: Some("t2na"),
        main: Some(&main),
        ..Parts::default()
    }
    .rejected("cannot share register 'lengths'");
}

/// Pipelines whose ports have different parsers; `map` is an annotation of the ingress parsers.
fn parsers(map: &str) -> String {
    format!(
        "parser Other(packet_in pkt, out H hdr, out M md, out ingress_intrinsic_metadata_t intr) {{
             value_set<bit<8>>(4) kinds;
             state start {{ pkt.extract(intr); transition select(intr.ingress_port[7:0]) {{ kinds: accept; }} }}
         }}
         {map} IngressParsers(IP(), Other()) ips; EgressParsers(EP()) eps;
         MultiParserPipeline(ips, I(), ID(), eps, E(), ED()) p; MultiParserSwitch(p) main;"
    )
}

#[test]
fn port_selects_the_parser() {
    let map = parsers("@default_portmap({ 0, 17 }, 3)");
    let parts = Parts {
        main: Some(&map),
        ..Parts::default()
    };
    let json = parts.json();
    assert_eq!(names(&json, "parsers"), ["ingress_parser", "egress_parser"]);
    let parser = &json["parsers"][0];
    assert_eq!(parser["init_state"], "port");
    let transitions = list(named(parser, "parse_states", "port"), "transitions");
    let targets = transitions
        .iter()
        .map(|t| (t["value"].as_str(), t["next_state"].as_str()));
    assert_eq!(
        targets.take(3).collect::<Vec<_>>(),
        [
            (Some("0x00"), Some("ips.prsr0.IP.start")),
            (Some("0x11"), Some("ips.prsr0.IP.start")),
            (Some("0x03"), Some("ips.prsr1.Other.start")),
        ]
    );
    let schema = parts.schema();
    for name in ["p.ips.prsr0.$PORT_METADATA", "p.ips.prsr1.$PORT_METADATA"] {
        named(&schema, "tables", name);
    }
    assert!(
        parts
            .output()
            .p4info
            .contains("name: \"ips.prsr1.Other.kinds\"")
    );
}

#[test]
fn first_parser_serves_all_ports_without_a_map() {
    let main = parsers("");
    let json = Parts {
        main: Some(&main),
        ..Parts::default()
    }
    .json();
    let states = &json["parsers"][0];
    let transitions = list(named(states, "parse_states", "port"), "transitions");
    assert_eq!(transitions[0]["type"], "default");
    assert_eq!(transitions[0]["next_state"], "ips.prsr0.IP.start");
}

#[test]
fn invalid_map_of_parsers_is_an_error() {
    let main = parsers("@default_portmap(first)");
    Parts {
        main: Some(&main),
        ..Parts::default()
    }
    .rejected("invalid @default_portmap");
}

#[test]
fn parser_rejects_on_reject_and_without_a_match() {
    let json = Parts::default().json();
    let states = list(&json["parsers"][0], "parse_states");
    let start = &states[0];
    let next: Vec<&Value> = list(start, "transitions")
        .iter()
        .map(|t| &t["next_state"])
        .collect();
    assert_eq!(next, [&Value::Null, &"reject".into(), &"reject".into()]);
}

#[test]
fn flexible_headers_are_padded_to_bytes() {
    let json = Parts::default().json();
    let fields = list(named(&json, "header_types", "odd_t"), "fields");
    assert_eq!(fields.last().unwrap()[1], 5);
}

#[test]
fn action_selector_takes_the_members_of_its_profile() {
    let output = ingress(
        "ActionProfile(64) profile;
         Hash<bit<16>>(HashAlgorithm_t.CRC16) hash;
         ActionSelector(profile, hash, SelectorMode_t.FAIR, 8, 4) selector;
         action set(bit<8> x) { hdr.h.b = x; }
         table t {
             key = { hdr.h.a: exact; hdr.h.d: selector; }
             actions = { set; NoAction; }
             const default_action = NoAction;
             implementation = selector;
         }",
        "t.apply();",
    )
    .output();
    let json = output.json.unwrap();
    let profile = named(&json["pipelines"][0], "action_profiles", "I.profile");
    assert_eq!(profile["max_size"], 64);
    assert_eq!(profile["selector"]["algo"], "crc16");
    let table = named(&json["pipelines"][0], "tables", "I.t");
    assert_eq!(table["action_profile"], "I.profile");
    assert_eq!(output.p4info.matches("action_profiles {").count(), 1);
    assert!(
        output.p4info.contains("max_group_size: 8"),
        "{}",
        output.p4info
    );
}

#[test]
fn selectors_that_share_a_profile_keep_their_names() {
    let table = |name: &str, selector: &str| {
        format!(
            "table {name} {{
                 key = {{ hdr.h.a: exact; hdr.h.d: selector; }}
                 actions = {{ NoAction; }}
                 implementation = {selector};
             }}"
        )
    };
    let locals = format!(
        "ActionProfile(64) profile;
         Hash<bit<16>>(HashAlgorithm_t.CRC16) hash;
         ActionSelector(profile, hash, SelectorMode_t.FAIR, 8, 4) one;
         ActionSelector(profile, hash, SelectorMode_t.FAIR, 8, 4) other;
         {} {}",
        table("t", "one"),
        table("u", "other")
    );
    let output = ingress(&locals, "t.apply(); u.apply();").output();
    let json = output.json.unwrap();
    let profiles = names(&json["pipelines"][0], "action_profiles");
    assert_eq!(profiles, ["I.one", "I.other"]);
    for name in profiles {
        let line = format!("name: \"{name}\"");
        assert!(output.p4info.contains(&line), "{}", output.p4info);
    }
}

#[test]
fn p4info_has_the_types_of_objects_without_a_message() {
    let output = Parts {
        parser: ["", "md.x = port_metadata_unpack<port_t>(pkt).kind;"],
        ..ingress(
            "DirectRegister<pair>() seen;
             action mark() { seen.write({1, 2}); }
             table t { key = { hdr.h.a: exact; } actions = { mark; } registers = seen; size = 4; }",
            "t.apply();",
        )
    };
    let p4info = output.output().p4info;
    for ty in ["pair", "port_t"] {
        let key = format!("key: \"{ty}\"");
        assert!(p4info.contains(&key), "{p4info}");
    }
}

#[test]
fn memories_and_timeouts_of_tables_are_accepted() {
    let output = ingress(
        "Alpm(1024, 2) alpm;
         Atcam(16) atcam;
         table t { key = { hdr.h.d: lpm; } actions = { NoAction; } implementation = alpm; idle_timeout = true; }
         table u {
             key = { hdr.h.a: atcam_partition_index; hdr.h.d: ternary; }
             actions = { NoAction; } atcam = atcam; proxy_hash = Hash<bit<16>>(HashAlgorithm_t.CRC16);
         }",
        "t.apply(); u.apply();",
    )
    .output();
    let json = output.json.unwrap();
    let t = named(&json["pipelines"][0], "tables", "I.t");
    assert_eq!(
        (&t["support_timeout"], &t["type"]),
        (&true.into(), &"simple".into())
    );
    let u = named(&json["pipelines"][0], "tables", "I.u");
    assert_eq!(u["key"][0]["match_type"], "exact");
    assert!(
        output
            .p4info
            .contains("other_match_type: \"atcam_partition_index\"")
    );
}

#[test]
fn flags_are_parameters_of_one_bit() {
    let json = ingress(
        "action set(bool flag) { md.flag = flag; }
         table t { key = { hdr.h.a: exact; } actions = { set; } }",
        "t.apply();",
    )
    .json();
    assert_eq!(
        named(&json, "actions", "I.set")["runtime_data"][0]["bitwidth"],
        1
    );
}
