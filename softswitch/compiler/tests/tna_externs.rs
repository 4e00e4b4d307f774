// SPDX-License-Identifier: Apache-2.0
//! The externs of TNA, except registers.

#[path = "common/tna.rs"]
mod frame;

use frame::{Parts, attributes, ingress, list, named, operations, pairs};

#[test]
fn counters_and_meters_have_their_attributes() {
    let output = ingress(
        "Counter<bit<32>, bit<8>>(100, CounterType_t.PACKETS_AND_BYTES) c;
         Meter<bit<8>>(50, MeterType_t.PACKETS) m;
         DirectCounter<bit<32>>(CounterType_t.PACKETS) dc;
         DirectMeter(MeterType_t.BYTES) dm;
         action hit() { dc.count(); hdr.h.b = dm.execute(); }
         table t { key = { hdr.h.a: exact; } actions = { hit; } counters = dc; }
         table u { key = { hdr.h.a: exact; } actions = { NoAction; } counters = c; }
         action hit2() { hdr.h.b = dm.execute(); }
         table v { key = { hdr.h.a: exact; } actions = { hit2; } meters = dm; }",
        "c.count(hdr.h.a); hdr.h.b = m.execute(hdr.h.a); u.apply(); v.apply();",
    )
    .output();
    let json = output.json.unwrap();
    assert_eq!(
        attributes(&json, "I.c"),
        pairs(&[("n_counters", "0x64"), ("type", "0x2")])
    );
    assert_eq!(
        attributes(&json, "I.m")[1..2],
        pairs(&[("n_meters", "0x32")])
    );
    assert_eq!(operations(&json, "_Meter_execute")[0].len(), 3);
    assert_eq!(named(&json, "meter_arrays", "I.dm")["binding"], "I.v");
    assert!(output.p4info.contains("unit: BOTH"));
}

#[test]
fn filters_and_random_numbers_are_primitives() {
    let json = ingress(
        "Lpf<bit<32>, bit<8>>(10) lpf;
         Wred<bit<32>, bit<8>>(20, 1, 0) wred;
         DirectLpf<bit<32>>() direct;
         Random<bit<4>>() random;
         action smooth() { hdr.h.d = direct.execute(hdr.h.e); }
         table t { key = { hdr.h.a: exact; } actions = { smooth; } filters = direct; }",
        "hdr.h.d = lpf.execute(hdr.h.e, hdr.h.a); hdr.h.a = wred.execute(hdr.h.e, 3);
         hdr.h.b = (bit<8>) random.get(); t.apply();",
    )
    .json();
    assert_eq!(attributes(&json, "I.lpf"), pairs(&[("n_cells", "0xa")]));
    assert_eq!(
        attributes(&json, "I.wred"),
        pairs(&[
            ("n_cells", "0x14"),
            ("drop_value", "0x1"),
            ("no_drop_value", "0x0")
        ])
    );
    assert_eq!(attributes(&json, "I.direct"), pairs(&[("binding", "I.t")]));
    let lpf = operations(&json, "_Lpf_execute");
    assert_eq!(lpf[0][1]["value"], serde_json::json!(["h", "a"]));
    let random = operations(&json, "modify_field_rng_uniform");
    assert_eq!(random[0][2]["value"], "0x0f");
}

#[test]
fn hash_has_its_algorithm_and_polynomial() {
    let json = ingress(
        "Hash<bit<16>>(HashAlgorithm_t.CRC16) plain;
         CRCPolynomial<bit<32>>(32w0x04C11DB7, true, false, false, 32w0xFFFFFFFF, 32w0) poly;
         Hash<bit<32>>(HashAlgorithm_t.CUSTOM, poly) custom;",
        "hdr.h.c = plain.get({hdr.h.a, 8w7}); hdr.h.d = custom.get({hdr.h.b});",
    )
    .json();
    assert_eq!(attributes(&json, "I.plain"), pairs(&[("algo", "crc16")]));
    assert_eq!(
        attributes(&json, "I.custom"),
        pairs(&[
            ("algo", "custom"),
            ("coeff", "0x4c11db7"),
            ("reversed", "0x1"),
            ("init", "0xffffffff"),
            ("xor", "0x0"),
            ("width", "0x20"),
        ])
    );
    let json = ingress(
        "Hash<bit<16>>(HashAlgorithm_t.XOR16) h;",
        "hdr.h.c = h.get({hdr.h.a});",
    )
    .json();
    assert_eq!(attributes(&json, "I.h"), pairs(&[("algo", "xor16")]));
    let json = ingress(
        "Hash<bit<16>>(HashAlgorithm_t.CRC16) h;",
        "hdr.h.b = h.get({hdr.h.a})[7:0];",
    )
    .json();
    let expected = pairs(&[("algo", "crc16"), ("used_bits", "0x8")]);
    assert_eq!(attributes(&json, "I.h"), expected);
}

#[test]
fn lengths_of_direct_meters_are_those_of_whole_packets() {
    let parts = Parts {
        architecture: Some("t2na"),
        ..ingress(
            "DirectMeter(MeterType_t.BYTES, true) m;
             action hit() { hdr.h.b = m.execute(adjust_byte_count = 14); }
             table t { key = { hdr.h.a: exact; } actions = { hit; } meters = m; }",
            "t.apply();",
        )
    };
    let (output, messages) = parts.compile();
    assert!(output.is_some_and(|o| o.json.is_some()), "{messages}");
    for warning in [
        "ignores adjustments of byte counts",
        "the packet as it enters egress",
    ] {
        assert!(messages.contains(warning), "{messages}");
    }
}

#[test]
fn counts_are_corrected_after_they_are_made() {
    let json = Parts {
        architecture: Some("t2na"),
        ..ingress(
            "Counter<bit<32>, bit<8>>(4, CounterType_t.BYTES, true) c;",
            "c.count(hdr.h.a, 14);",
        )
    }
    .json();
    let corrections = operations(&json, "_Counter_correct");
    let mut lengths: Vec<usize> = corrections.iter().map(|c| c.len()).collect();
    lengths.sort_unstable();
    assert_eq!(
        lengths,
        [2, 3],
        "the length that leaves, and the adjustment"
    );
}

#[test]
fn symmetric_hash_orders_its_fields() {
    let json = ingress(
        "@symmetric(\"hdr.h.a\", \"hdr.h.b\") Hash<bit<16>>(HashAlgorithm_t.CRC16) s;",
        "hdr.h.c = s.get({hdr.h.a, hdr.h.b, hdr.h.d});",
    )
    .json();
    assert_eq!(operations(&json, "<=").len(), 2);
}

#[test]
fn checksum_has_methods_in_parser_and_deparser() {
    let json = Parts {
        parser: [
            "Checksum() sum;",
            "sum.add(hdr.h); sum.subtract({hdr.h.c}); md.wrong = sum.verify();
             md.sum = sum.get(); sum.subtract_all_and_deposit(md.sum);",
        ],
        deparser: [
            "Checksum() sum;",
            "if (md.flag) { hdr.h.c = sum.update({hdr.h.a, hdr.h.b}, true); }",
        ],
        ..Parts::default()
    }
    .json();
    for op in [
        "add",
        "subtract",
        "verify",
        "get",
        "subtract_all_and_deposit",
        "update",
    ] {
        assert_eq!(
            operations(&json, &format!("_Checksum_{op}")).len(),
            1,
            "{op}"
        );
    }
    assert_eq!(operations(&json, "_Checksum_update")[0][3]["value"], "0x01");
    Parts {
        deparser: ["Checksum() sum;", "sum.add({hdr.h.a});"],
        ..Parts::default()
    }
    .rejected("'Checksum.add' cannot be used here");
}

#[test]
fn parser_counter_is_a_variable() {
    let parts = |parsing| Parts {
        parser: [
            "ParserCounter() counter; ParserPriority() priority;",
            parsing,
        ],
        ..Parts::default()
    };
    let json = parts(
        "counter.set(hdr.h.a, 20, 2, 3, 5); counter.decrement(1); md.flag = counter.is_zero();
         md.wrong = counter.is_negative(); priority.set(3);",
    )
    .json();
    assert_eq!(operations(&json["parsers"][0], "verify").len(), 1);
    parts("counter.set(8w3); counter.increment(2);").json();
}

#[test]
fn deparser_sends_what_the_program_selects() {
    let parts = |deparser: [&'static str; 2]| Parts {
        ingress: [
            "",
            "dprsr.mirror_type = 1; dprsr.resubmit_type = 2; dprsr.digest_type = 3;",
        ],
        deparser,
        ..Parts::default()
    };
    let json = parts([
        "Mirror(1) mirror; Resubmit(2) resubmit; Digest<port_t>(3) digest;",
        "mirror.emit<odd_t>(3, {md.x, 5}); resubmit.emit<odd_t>({1, 2}); digest.pack({hdr.h.c, hdr.h.a});",
    ])
    .json();
    let mirror = operations(&json, "_Mirror_emit");
    // Two fields and the padding of the header.
    assert_eq!(list(&mirror[0][1], "value").len(), 3);
    assert_eq!(operations(&json, "_Resubmit_emit").len(), 1);
    assert_eq!(operations(&json, "generate_digest").len(), 1);
    assert_eq!(operations(&json["deparsers"], "_jump_if_zero").len(), 3);
    let fields = named(&json, "header_types", "scalars_0")["fields"].to_string();
    assert!(
        fields.contains("ig_intr_md_for_dprsr.mirror_type.is_set"),
        "{fields}"
    );
    let plain = parts([
        "Mirror() mirror;",
        "if (dprsr.mirror_type == 1) { mirror.emit(7); }",
    ])
    .json();
    assert_eq!(
        operations(&plain, "_Mirror_emit")[0][1]["value"],
        serde_json::json!([])
    );
}

#[test]
fn functions_are_expressions() {
    let json = Parts {
        parser: [
            "",
            "port_t p = port_metadata_unpack<port_t>(pkt); md.x = p.kind;",
        ],
        ingress: [
            "",
            "hdr.h.d = max(hdr.h.d, hdr.h.e); hdr.h.e = sizeInBytes(hdr.h);
             funnel_shift_right(hdr.h.d, hdr.h.d, hdr.h.e, 4); invalidate(tm.ucast_egress_port);
             md.flag = is_validated(hdr.h.a);",
        ],
        ..Parts::default()
    }
    .json();
    assert_eq!(operations(&json["parsers"], "advance").len(), 2);
    assert!(json["actions"].to_string().contains("0x01ff"));
    assert!(json["actions"].to_string().contains("0x0000000c"));
}

#[test]
fn unsupported_methods_are_named_with_their_place() {
    let address = [
        "Register<bit<32>, bit<8>>(16) r;
         RegisterAction<bit<32>, bit<8>, bit<32>>(r) a = {
             void apply(inout bit<32> value, out bit<32> at) { at = this.address(); }
         };",
        "hdr.h.d = a.execute(1);",
    ];
    Parts {
        ingress: address,
        architecture: Some("t2na"),
        ..Parts::default()
    }
    .rejected("this target does not support address of a register action");
    ingress(
        "DirectMeter(MeterType_t.BYTES) m;
         action hit() { hdr.h.b = m.execute(color = MeterColor_t.GREEN); }
         table t { key = { hdr.h.a: exact; } actions = { hit; } meters = m; }",
        "t.apply();",
    )
    .rejected("direct meters ignore the colour of the packet");
}
