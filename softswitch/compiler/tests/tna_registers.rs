// SPDX-License-Identifier: Apache-2.0
//! Registers of TNA, and the actions that read and write them.

#[path = "common/tna.rs"]
mod frame;

use frame::{Parts, attributes, ingress, named, operations, pairs};

#[test]
fn register_action_reads_and_writes_what_it_changes() {
    let json = ingress(
        "Register<pair, bit<8>>(16, {1, 2}) r;
         RegisterAction<pair, bit<8>, bit<32>>(r) a = {
             void apply(inout pair value, out bit<32> rv) { rv = value.lo; value.hi = value.hi + hdr.h.e; }
         };",
        "hdr.h.d = a.execute(hdr.h.a);",
    )
    .json();
    for (name, initial) in [("I.r.lo", "0x1"), ("I.r.hi", "0x2")] {
        let register = named(&json, "register_arrays", name);
        assert_eq!(register["initial_value"], initial);
        assert_eq!(register["size"], 16);
        assert_eq!(register["bitwidth"], 32);
    }
    assert_eq!(operations(&json, "register_read").len(), 2);
    let writes = operations(&json, "register_write");
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0][0]["value"], "I.r.hi");
}

#[test]
fn register_action_may_have_no_output() {
    let json = ingress(
        "Register<bit<32>, bit<8>>(16) r;
         RegisterAction<bit<32>, bit<8>, bit<32>>(r) a = {
             void apply(inout bit<32> value) { if (value < 10) { value = value + 1; } else { return; } }
         };
         action count(bit<8> i) { a.execute(i); }
         table t { key = { hdr.h.a: exact; } actions = { count; } }",
        "t.apply();",
    )
    .json();
    let count = named(&json, "actions", "I.count");
    assert_eq!(operations(count, "register_read").len(), 1);
    assert_eq!(operations(count, "register_write").len(), 1);
    assert!(named(&json, "register_arrays", "I.r")["initial_value"].is_null());
}

#[test]
fn register_param_is_a_single_cell_that_p4info_omits() {
    let output = ingress(
        "Register<bit<32>, bit<8>>(16) r;
         RegisterParam<bit<32>>(7) p;
         RegisterAction<bit<32>, bit<8>, bit<32>>(r) a = {
             void apply(inout bit<32> value, out bit<32> rv) { value = value + p.read(); rv = value; }
         };",
        "hdr.h.d = a.execute(0);",
    )
    .output();
    let json = output.json.unwrap();
    let param = named(&json, "register_arrays", "I.p");
    assert_eq!(
        (&param["size"], &param["initial_value"]),
        (&1.into(), &"0x7".into())
    );
    assert!(output.p4info.contains("name: \"I.r\""));
    assert!(!output.p4info.contains("name: \"I.p\""));
}

#[test]
fn direct_register_belongs_to_its_table() {
    let locals = |property: &str| {
        format!(
            "DirectRegister<bit<32>>() r;
             DirectRegisterAction<bit<32>, bit<32>>(r) a = {{
                 void apply(inout bit<32> value, out bit<32> rv) {{ value = value + 1; rv = value; }}
             }};
             action count() {{ hdr.h.d = a.execute(); }}
             table t {{ key = {{ hdr.h.a: exact; }} actions = {{ count; }} size = 20; {property} }}"
        )
    };
    let json = ingress(&locals("registers = r;"), "t.apply();").json();
    let register = named(&json, "register_arrays", "I.r");
    assert_eq!(register["is_direct"], true);
    assert_eq!(register["binding"], "I.t");
    assert_eq!(operations(&json, "_DirectRegister_read").len(), 1);
    assert_eq!(operations(&json, "_DirectRegister_write").len(), 1);
    ingress(&locals(""), "t.apply();").rejected("'I.r' can be called only in actions of its table");
}

#[test]
fn predicate_of_a_register_action_has_one_bit_set() {
    let body = |conditions: &str| {
        format!(
            "Register<bit<32>, bit<8>>(16) r;
             RegisterAction<bit<32>, bit<8>, bit<4>>(r) a = {{
                 void apply(inout bit<32> value, out bit<4> rv) {{ rv = this.predicate({conditions}); }}
             }};"
        )
    };
    let apply = "hdr.h.a = (bit<8>) a.execute(0);";
    let json = ingress(&body("value == 1, value > 2"), apply).json();
    assert_eq!(operations(&json, "<<").len(), 1);
    ingress(&body(""), apply).rejected("needs the conditions of predicate()");
}

#[test]
fn register_action_of_t2na_has_several_outputs_and_extremes() {
    let parts = Parts {
        architecture: Some("t2na"),
        ..ingress(
            "Register<bit<32>, bit<8>>(16) r;
             RegisterAction2<bit<32>, bit<8>, bit<8>, bit<32>>(r) a = {
                 void apply(inout bit<32> value, out bit<8> smallest, out bit<32> old) {
                     old = value;
                     smallest = this.min8(value, 0x5);
                     value = hdr.h.e;
                 }
             };",
            "hdr.h.b = a.execute(hdr.h.a, hdr.h.d);",
        )
    };
    let json = parts.json();
    // Only two of the four bytes are compared.
    assert_eq!(operations(&json, "<").len(), 2);
    let text = json["actions"].to_string();
    assert!(text.contains("I.a.old"), "{text}");
}

#[test]
fn math_unit_has_a_table() {
    let json = ingress(
        "Register<bit<32>, bit<8>>(16) r;
         MathUnit<bit<32>>(MathOp_t.SQR, 1) square;
         MathUnit<bit<32>>(false, 0, -3, {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}) own;
         RegisterAction<bit<32>, bit<8>, bit<32>>(r) a = {
             void apply(inout bit<32> value) { value = square.execute(value) + own.execute(value); }
         };",
        "a.execute(0);",
    )
    .json();
    assert_eq!(operations(&json, "_MathUnit_execute").len(), 2);
    let square = attributes(&json, "I.square");
    assert_eq!(
        square[..3],
        pairs(&[("invert", "0x0"), ("shift", "0x1"), ("scale", "-0x6")])
    );
    let table = square[3].1.as_array().unwrap();
    // The largest operand is 15 / 8, and its square times 64 is 225.
    assert_eq!(
        (table.len(), &table[15], &table[7]),
        (16, &"0xe1".into(), &"0x0".into())
    );
    let own = attributes(&json, "I.own");
    assert_eq!((&own[2].1, &own[3].1[1]), (&"-0x3".into(), &"0x1".into()));
}

/// A program for Tofino 2 with a register of 16 cells.
fn cells<'a>(apply: &'a str) -> Parts<'a> {
    Parts {
        ingress: [
            "Register<bit<32>, bit<8>>(16) r;
             RegisterAction<bit<32>, bit<8>, bit<32>>(r) add = { void apply(inout bit<32> value) { value = value + 1; } };",
            apply,
        ],
        architecture: Some("t2na"),
        ..Parts::default()
    }
}

#[test]
fn sweep_and_clear_are_loops_over_all_cells() {
    for apply in ["add.sweep();", "r.clear(7, 0);"] {
        let json = cells(apply).json();
        assert_eq!(operations(&json, "register_write").len(), 1, "{apply}");
        assert_eq!(operations(&json, "_jump").len(), 1, "{apply}");
        assert!(
            json["actions"].to_string().contains("0x00000010"),
            "{apply}"
        );
    }
}

#[test]
fn sweep_counts_as_an_access() {
    cells("add.sweep(); r.clear(0);").rejected("a packet can access register 'I.r' only once");
}

#[test]
fn clear_takes_a_constant() {
    cells("r.clear(hdr.h.d);").rejected("the value of clear must be known at compile time");
}
