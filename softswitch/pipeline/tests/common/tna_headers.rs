// SPDX-License-Identifier: Apache-2.0
//! The headers of the small programs for TNA.

/// Name, whether it is metadata, and fields of a header.
pub type Header = (&'static str, bool, &'static [(&'static str, u32)]);

/// The types and the instances of the architecture, of `hdr`, and of `data`, which carries resubmitted or mirrored bytes.
pub const HEADERS: [Header; 10] = [
    (
        "ig_intr_md",
        false,
        &[
            ("resubmit_flag", 1),
            ("_pad1", 1),
            ("packet_version", 2),
            ("_pad2", 3),
            ("ingress_port", 9),
            ("ingress_mac_tstamp", 48),
        ],
    ),
    (
        "eg_intr_md",
        false,
        &[
            ("_pad0", 7),
            ("egress_port", 9),
            ("_pad1", 14),
            ("deq_timedelta", 18),
            ("egress_rid", 16),
            ("_pad7", 7),
            ("egress_rid_first", 1),
            ("_pad8", 3),
            ("egress_qid", 5),
            ("_pad9", 5),
            ("egress_cos", 3),
            ("pkt_length", 16),
        ],
    ),
    (
        "ig_intr_md_from_prsr",
        true,
        &[("global_tstamp", 48), ("parser_err", 16)],
    ),
    (
        "ig_intr_md_for_dprsr",
        true,
        &[("drop_ctl", 3), ("mirror_type", 3)],
    ),
    (
        "ig_intr_md_for_tm",
        true,
        &[
            ("ucast_egress_port", 9),
            ("bypass_egress", 1),
            ("ingress_cos", 3),
            ("qid", 5),
            ("copy_to_cpu", 1),
            ("mcast_grp_a", 16),
            ("mcast_grp_b", 16),
        ],
    ),
    (
        "eg_intr_md_from_prsr",
        true,
        &[("global_tstamp", 48), ("parser_err", 16)],
    ),
    (
        "eg_intr_md_for_dprsr",
        true,
        &[("drop_ctl", 3), ("mirror_type", 3)],
    ),
    ("hdr", false, &[("op", 8), ("arg", 8), ("x", 16), ("y", 32)]),
    ("data", false, &[("value", 64)]),
    ("meta", true, &[("a", 16), ("b", 8), ("c", 8), ("wide", 64)]),
];
