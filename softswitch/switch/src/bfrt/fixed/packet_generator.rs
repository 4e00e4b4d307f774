// SPDX-License-Identifier: Apache-2.0
//! The tables of the packet generators of Tofino.

use serde_json::{Value, json};

use super::{Fields, data, table};

const FIRST_ID: u32 = 0xff03_0001;

const PORT: &Fields = &[
    ("recirculation_enable", "bool"),
    ("pktgen_enable", "bool"),
    ("pattern_matching_enable", "bool"),
    ("clear_port_down_enable", "bool"),
];

/// Fields of an application; `SHORT` is the type of short numbers.
const APPLICATION: &Fields = &[
    ("app_enable", "bool"),
    ("pkt_len", SHORT),
    ("pkt_buffer_offset", SHORT),
    ("pipe_local_source_port", "uint32"),
    ("increment_source_port", "bool"),
    ("batch_count_cfg", SHORT),
    ("packets_per_batch_cfg", SHORT),
    ("ibg", "uint32"),
    ("ibg_jitter", "uint32"),
    ("ipg", "uint32"),
    ("ipg_jitter", "uint32"),
    ("batch_counter", "uint64"),
    ("pkt_counter", "uint64"),
    ("trigger_counter", "uint64"),
];

/// Further fields on Tofino 2.
const TOFINO2_APPLICATION: &Fields = &[
    ("offset_len_from_recir_pkt_enable", "bool"),
    ("source_port_wrap_max", "bytes:8"),
    ("assigned_chnl_id", "bytes:8"),
];

const SHORT: &str = "bytes:16";

/// The id of the first field of an application; smaller ones belong to actions.
const APPLICATION_ID: u32 = 12;

const TIMER: (u32, &Fields) = (1, &[("timer_nanosec", "uint32")]);

/// An action with its fields, each list with the id of the first.
fn action(id: u32, name: &str, fields: &[(u32, &Fields)]) -> Value {
    let fields = fields
        .iter()
        .flat_map(|(first, fields)| data(fields, *first, false));
    // Fields of actions are not wrapped.
    let fields: Vec<Value> = fields.map(|mut field| field["singleton"].take()).collect();
    json!({"id": id, "name": name, "action_scope": "TableAndDefault", "annotations": [], "data": fields})
}

/// Returns the tables of a chip's family; none if the family does not have packet generators.
pub(super) fn tables(family: &str) -> Vec<Value> {
    let is_tofino2 = match family {
        "tf1" => false,
        "tf2" => true,
        _ => return vec![],
    };
    let table = |name: &str, number: u32, kind, size, keys: &Fields, data| {
        let name = format!("{family}.pktgen.{name}");
        table(&name, FIRST_ID + number, kind, size, keys, data)
    };
    let ports = data(PORT, 1, false);
    let by_port: &Fields = &[("dev_port", "uint32")];
    let place: &Fields = &[
        ("pkt_buffer_offset", "uint32"),
        ("pkt_buffer_size", "uint32"),
    ];
    let buffer = data(&[("buffer", "bytes:8*")], 1, false);
    let mut tables = vec![
        table("port_cfg", 0, "PktgenPortCfg", 256, by_port, ports),
        table(
            "app_cfg",
            1,
            "PktgenAppCfg",
            if is_tofino2 { 16 } else { 8 },
            &[("app_id", "uint32")],
            applications(is_tofino2),
        ),
        table("pkt_buffer", 2, "PktgenPktBufferCfg", 1024, place, buffer),
    ];
    tables[1]["action_specs"] = actions(is_tofino2).into();
    if is_tofino2 {
        let mask = data(&[("mask", "bytes:72")], 1, false);
        let by_number: &Fields = &[("port_mask_sel", "uint32")];
        tables.push(table(
            "port_mask",
            3,
            "PktgenPortMaskCfg",
            2,
            by_number,
            mask,
        ));
    }
    tables
}

fn applications(is_tofino2: bool) -> Vec<Value> {
    let mut fields = data(APPLICATION, APPLICATION_ID, false);
    if is_tofino2 {
        let next = APPLICATION_ID + APPLICATION.len() as u32;
        fields.extend(data(TOFINO2_APPLICATION, next, false));
    }
    fields
}

fn actions(is_tofino2: bool) -> Vec<Value> {
    const PATTERN_ID: u32 = 4;
    const PATTERN: &Fields = &[("pattern_value", "uint32"), ("pattern_mask", "uint32")];
    const TOFINO2_PATTERN: &Fields = &[
        ("pattern_value", "bytes:128"),
        ("pattern_mask", "bytes:128"),
    ];
    const MASK: (u32, &Fields) = (3, &[("port_mask_sel", "uint32")]);
    let (pattern, mask) = match is_tofino2 {
        true => ((PATTERN_ID, TOFINO2_PATTERN), &[MASK][..]),
        false => ((PATTERN_ID, PATTERN), &[][..]),
    };
    let mut actions = vec![
        action(1, "trigger_timer_one_shot", &[TIMER]),
        action(2, "trigger_timer_periodic", &[TIMER]),
        action(3, "trigger_port_down", mask),
        action(4, "trigger_recirc_pattern", &[pattern]),
    ];
    if is_tofino2 {
        actions.push(action(5, "trigger_dprsr", &[pattern]));
    }
    actions
}
