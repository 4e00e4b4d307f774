// SPDX-License-Identifier: Apache-2.0
//! The schema of the tables that do not depend on the program. Names and ids are those of Tofino's drivers.

mod packet_generator;

use serde_json::{Value, json};

/// Fields of a table: name and type. A width follows `bytes:`. A type is followed by `*` for a list of values, and by `!`
/// for a field that clients only read.
type Fields = [(&'static str, &'static str)];

const PORT: &Fields = &[
    (
        "$SPEED",
        "BF_SPEED_NONE|BF_SPEED_1G|BF_SPEED_10G|BF_SPEED_25G|BF_SPEED_40G|BF_SPEED_40G_R2|BF_SPEED_40G_NB|BF_SPEED_40G_NON_BREAKABLE|BF_SPEED_50G|BF_SPEED_50G_CONS|BF_SPEED_100G|BF_SPEED_200G|BF_SPEED_400G",
    ),
    (
        "$FEC",
        "BF_FEC_TYP_NONE|BF_FEC_TYP_FIRECODE|BF_FEC_TYP_REED_SOLOMON|BF_FEC_TYP_FC|BF_FEC_TYP_RS",
    ),
    ("$N_LANES", "uint32"),
    ("$PORT_ENABLE", "bool"),
    (
        "$AUTO_NEGOTIATION",
        "PM_AN_DEFAULT|PM_AN_FORCE_ENABLE|PM_AN_FORCE_DISABLE",
    ),
    (
        "$LOOPBACK_MODE",
        "BF_LPBK_NONE|BF_LPBK_MAC_NEAR|BF_LPBK_MAC_FAR|BF_LPBK_PCS_NEAR|BF_LPBK_SERDES_NEAR|BF_LPBK_SERDES_FAR",
    ),
    ("$TX_MTU", "uint32"),
    ("$RX_MTU", "uint32"),
    ("$TX_PFC_EN_MAP", "uint32"),
    ("$RX_PFC_EN_MAP", "uint32"),
    ("$TX_PAUSE_FRAME_EN", "bool"),
    ("$RX_PAUSE_FRAME_EN", "bool"),
    ("$CUT_THROUGH_EN", "bool"),
    (
        "$PORT_DIR",
        "PM_PORT_DIR_DEFAULT|PM_PORT_DIR_TX_ONLY|PM_PORT_DIR_RX_ONLY",
    ),
    (
        "$MEDIA_TYPE",
        "BF_MEDIA_TYPE_UNKNOWN|BF_MEDIA_TYPE_COPPER|BF_MEDIA_TYPE_OPTICAL!",
    ),
    ("$SDS_TX_ATTN", "uint32"),
    ("$SDS_TX_PRE", "int32"),
    ("$SDS_TX_PRE2", "int32"),
    ("$SDS_TX_POST", "int32"),
    ("$SDS_TX_POST2", "int32"),
    ("$IS_VALID", "bool!"),
    ("$IS_INTERNAL", "bool!"),
    ("$CONN_ID", "uint32!"),
    ("$CHNL_ID", "uint32!"),
    ("$PORT_UP", "bool!"),
    ("$PORT_NAME", "string!"),
    ("$RX_PRSR_PRI_THRESH", "uint32"),
];

const PORT_STAT: &Fields = &[
    ("$FramesReceivedOK", "uint64"),
    ("$FramesReceivedAll", "uint64"),
    ("$FramesReceivedwithFCSError", "uint64"),
    ("$FrameswithanyError", "uint64"),
    ("$OctetsReceivedinGoodFrames", "uint64"),
    ("$OctetsReceived", "uint64"),
];

/// The first of the counters of sent frames; those in between do not exist here.
const SENT: &Fields = &[
    ("$FramesTransmittedOK", "uint64"),
    ("$FramesTransmittedAll", "uint64"),
    ("$FramesTransmittedwithError", "uint64"),
    ("$OctetsTransmittedwithouterror", "uint64"),
    ("$OctetsTransmittedTotal", "uint64"),
];

const SENT_ID: u32 = 33;

const MIRROR: &Fields = &[
    ("$session_enable", "bool"),
    ("$direction", "INGRESS|EGRESS|BOTH"),
    ("$ucast_egress_port", "uint32"),
    ("$ucast_egress_port_valid", "bool"),
    ("$egress_port_queue", "uint32"),
    ("$ingress_cos", "uint32"),
    ("$packet_color", "GREEN|YELLOW|RED"),
    ("$level1_mcast_hash", "uint32"),
    ("$level2_mcast_hash", "uint32"),
    ("$mcast_grp_a", "uint16"),
    ("$mcast_grp_a_valid", "bool"),
    ("$mcast_grp_b", "uint16"),
    ("$mcast_grp_b_valid", "bool"),
    ("$mcast_l1_xid", "uint16"),
    ("$mcast_l2_xid", "uint16"),
    ("$mcast_rid", "uint16"),
    ("$icos_for_copy_to_cpu", "uint32"),
    ("$copy_to_cpu", "bool"),
    ("$max_pkt_len", "uint16"),
];

/// The id of the first field of a mirror session; smaller ones belong to actions.
const MIRROR_ID: u32 = 5;

const DEVICE: &Fields = &[
    ("sku", "string!"),
    ("num_pipes", "uint32!"),
    ("num_stages", "uint32!"),
    ("num_max_ports", "uint32!"),
    ("num_front_ports", "uint32!"),
    ("pcie_cpu_port", "uint32!"),
    ("eth_cpu_port_list", "uint32*!"),
    ("internal_port_list", "uint32*!"),
    ("external_port_list", "uint32*!"),
    ("recirc_port_list", "uint32*!"),
    ("intr_based_link_monitoring", "bool!"),
    ("flow_learn_intr_mode", "bool"),
    ("lrt_dr_timeout_usec", "uint32"),
    ("flow_learn_timeout_usec", "uint32"),
    ("inactive_node_delete", "bool"),
    ("selector_member_order", "bool"),
];

/// Returns the type of a field.
fn of(ty: &str) -> Value {
    match ty {
        "string" => json!({"type": "string"}),
        choices if choices.contains('|') => {
            json!({"type": "string", "choices": choices.split('|').collect::<Vec<_>>()})
        }
        ty => match ty.split_once(':') {
            Some((ty, width)) => json!({"type": ty, "width": width.parse::<u32>().ok()}),
            None => json!({"type": ty}),
        },
    }
}

/// Returns data fields with successive ids. `is_mandatory` applies to all.
fn data(fields: &Fields, first: u32, is_mandatory: bool) -> Vec<Value> {
    let fields = fields.iter().zip(first..);
    fields
        .map(|((name, ty), id)| {
            let (ty, is_read_only) = match ty.strip_suffix('!') {
                Some(ty) => (ty, true),
                None => (*ty, false),
            };
            let (ty, is_repeated) = match ty.strip_suffix('*') {
                Some(ty) => (ty, true),
                None => (ty, false),
            };
            json!({
                "mandatory": is_mandatory,
                "read_only": is_read_only,
                "singleton": {
                    "id": id,
                    "name": name,
                    "repeated": is_repeated,
                    "annotations": [],
                    "type": of(ty),
                },
            })
        })
        .collect()
}

fn key(fields: &Fields) -> Vec<Value> {
    let fields = fields.iter().zip(1..);
    fields
        .map(|((name, ty), id)| {
            json!({
                "id": id,
                "name": name,
                "repeated": false,
                "annotations": [],
                "mandatory": true,
                "match_type": "Exact",
                "type": of(ty),
            })
        })
        .collect()
}

fn table(name: &str, id: u32, kind: &str, size: u32, keys: &Fields, data: Vec<Value>) -> Value {
    json!({
        "name": name,
        "id": id,
        "table_type": kind,
        "size": size,
        "annotations": [],
        "depends_on": [],
        "key": key(keys),
        "data": data,
        "supported_operations": [],
        "attributes": [],
    })
}

fn ports() -> Vec<Value> {
    let by_port: &Fields = &[("$DEV_PORT", "uint32")];
    let port = || data(&[("$DEV_PORT", "uint32!")], 1, false);
    let table =
        |name, n: u32, kind, keys, data| table(name, 0xff01_0000 + n, kind, 512, keys, data);
    let mut config = table("$PORT", 1, "PortConfigure", by_port, data(PORT, 1, false));
    config["attributes"] = json!(["port_status_notif_cb"]);
    let mut counters = data(PORT_STAT, 1, false);
    counters.extend(data(SENT, SENT_ID, false));
    let mut statistics = table("$PORT_STAT", 2, "PortStat", by_port, counters);
    statistics["attributes"] = json!(["poll_intvl_ms"]);
    let connector = &[("$CONN_ID", "uint32"), ("$CHNL_ID", "uint32")];
    vec![
        config,
        statistics,
        table("$PORT_HDL_INFO", 3, "PortHdlInfo", connector, port()),
        table(
            "$PORT_FP_IDX_INFO",
            4,
            "PortFpIdxInfo",
            &[("$FP_IDX", "uint32")],
            port(),
        ),
        table(
            "$PORT_STR_INFO",
            5,
            "PortStrInfo",
            &[("$PORT_NAME", "string")],
            port(),
        ),
    ]
}

fn multicast() -> Vec<Value> {
    let table =
        |name, n: u32, kind, size, key: (&'static str, &'static str), fields: &Fields, all| {
            let id = 0xff02_0000 + n;
            table(name, id, kind, size, &[key], data(fields, 1, all))
        };
    let groups = &[
        ("$MULTICAST_NODE_ID", "uint32*"),
        ("$MULTICAST_NODE_L1_XID_VALID", "bool*"),
        ("$MULTICAST_NODE_L1_XID", "uint16*"),
        ("$MULTICAST_ECMP_ID", "uint32*"),
        ("$MULTICAST_ECMP_L1_XID_VALID", "bool*"),
        ("$MULTICAST_ECMP_L1_XID", "uint16*"),
    ];
    let nodes = &[
        ("$MULTICAST_RID", "uint16"),
        ("$MULTICAST_LAG_ID", "uint8*"),
        ("$DEV_PORT", "uint32*"),
    ];
    let ecmp = &[("$MULTICAST_NODE_ID", "uint32*")];
    let lags = &[
        ("$DEV_PORT", "uint32*"),
        ("$MULTICAST_LAG_REMOTE_MSB_COUNT", "uint32"),
        ("$MULTICAST_LAG_REMOTE_LSB_COUNT", "uint32"),
    ];
    let ports = &[
        ("$MULTICAST_BACKUP_PORT", "uint32"),
        ("$MULTICAST_FORWARD_STATE", "bool"),
        ("$MULTICAST_CLEAR_FAST_FAILOVER", "bool"),
        ("$COPY_TO_CPU_PORT_ENABLE", "bool"),
    ];
    let prune = &[("$DEV_PORT", "uint32*")];
    let (n, p) = ("$MULTICAST_NODE_ID", "$DEV_PORT");
    let mut out = vec![
        table(
            "$pre.mgid",
            1,
            "PreMgid",
            65536,
            ("$MGID", "uint16"),
            groups,
            false,
        ),
        table(
            "$pre.node",
            2,
            "PreNode",
            1 << 24,
            (n, "uint32"),
            nodes,
            false,
        ),
        table(
            "$pre.ecmp",
            3,
            "PreEcmp",
            1 << 24,
            ("$MULTICAST_ECMP_ID", "uint32"),
            ecmp,
            false,
        ),
        table(
            "$pre.lag",
            4,
            "PreLag",
            255,
            ("$MULTICAST_LAG_ID", "uint8"),
            lags,
            false,
        ),
        table(
            "$pre.prune",
            5,
            "PrePrune",
            288,
            ("$MULTICAST_L2_XID", "uint16"),
            prune,
            true,
        ),
        table("$pre.port", 6, "PrePort", 288, (p, "uint32"), ports, false),
    ];
    out[0]["attributes"] = json!(["pre_device_config"]);
    out
}

fn mirror() -> Value {
    let sessions = data(MIRROR, MIRROR_ID, false);
    let key = &[("$sid", "uint16")];
    let mut out = table("$mirror.cfg", 0xff04_0001, "MirrorCfg", 1024, key, sessions);
    let action = |id: u32, name| json!({"id": id, "name": name, "action_scope": "TableAndDefault", "annotations": [], "data": []});
    out["action_specs"] = json!([action(2, "$normal")]);
    out
}

/// Returns the schema.
pub fn schema(family: &str) -> Value {
    let mut tables = ports();
    tables.extend(multicast());
    tables.push(mirror());
    tables.extend(packet_generator::tables(family));
    let name = format!("{family}.dev.device_configuration");
    let device = data(DEVICE, 1, false);
    tables.push(table(&name, 0xff06_0001, "DevConfigure", 1, &[], device));
    json!({"schema_version": "1.0.0", "tables": tables})
}
