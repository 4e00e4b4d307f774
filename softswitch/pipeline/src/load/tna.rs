// SPDX-License-Identifier: Apache-2.0
//! Resolves the metadata of the Tofino Native Architecture.

use std::ops::Range;

use super::cursor::Cursor;
use super::gress;
use super::headers::Names;
use super::mentions::Mentions;
use crate::error::LoadError;
use crate::program::layout::Header;
use crate::program::pipelines::{GHOST, Pipelines};
use crate::program::tna::{
    Bits, Chip, IntrinsicField, IntrinsicHeader, TnaForTm, TnaGhost, TnaGress, TnaMetadata,
};

type Result<T> = std::result::Result<T, LoadError>;

/// The metadata of a gress: the names of the instances.
struct GressNames {
    /// The name of the other gress, with which the names of its blocks begin.
    other: &'static str,
    intrinsic: &'static str,
    from_parser: &'static str,
    for_deparser: &'static str,
}

const INGRESS: GressNames = GressNames {
    other: "egress",
    intrinsic: "ig_intr_md",
    from_parser: "ig_intr_md_from_prsr",
    for_deparser: "ig_intr_md_for_dprsr",
};

const EGRESS: GressNames = GressNames {
    other: "ingress",
    intrinsic: "eg_intr_md",
    from_parser: "eg_intr_md_from_prsr",
    for_deparser: "eg_intr_md_for_dprsr",
};

impl GressNames {
    /// Returns the parts of a packet's state that the gress uses.
    fn used_parts(&self, root: &Cursor, names: &Names) -> Result<Vec<Range<usize>>> {
        let mentions = gress::mentions(root, self.other)?;
        let own = [self.intrinsic, self.from_parser, self.for_deparser, FOR_TM];
        Ok(gress::used_parts(&names.layout, &mentions, &own))
    }
}

const FOR_TM: &str = "ig_intr_md_for_tm";
const GHOST_METADATA: &str = "gh_intr_md";
const PING_PONG: &str = "ping_pong";

/// Bytes of the intrinsic headers of a program that does not declare them: ingress, egress.
const DEFAULT_BYTES: (usize, usize) = (8, 28);

/// Finds the fields, which the compiler names after their structs.
pub(super) fn load(root: &Cursor, names: &Names, chip: Chip) -> Result<TnaMetadata> {
    let mut mentions = Mentions::default();
    mentions.add(root.json);
    let mentions = &mentions;
    let find = |header: &str, field: &str| header_of(names, header)?.field(field);
    // A field that the program does not mention stays zero.
    let mentioned =
        |header: &str, field: &str| find(header, field).filter(|_| mentions.has(header, field));
    let need = |header: &str, field: &str| {
        find(header, field)
            .filter(|f| f.width <= 64)
            .ok_or_else(|| {
                root.get("headers")
                    .error(format!("{header}.{field} is missing"))
            })
    };
    let gress_of = |gress: &GressNames, default_bytes| {
        Ok::<_, LoadError>(TnaGress {
            intrinsic: intrinsic((names, mentions), gress.intrinsic, default_bytes),
            global_tstamp: mentioned(gress.from_parser, "global_tstamp"),
            parser_err: mentioned(gress.from_parser, "parser_err"),
            drop_ctl: need(gress.for_deparser, "drop_ctl")?,
            mirror_io_select: find(gress.for_deparser, "mirror_io_select"),
            used_parts: gress.used_parts(root, names)?,
        })
    };
    let tm = |field: &str| mentioned(FOR_TM, field);
    Ok(TnaMetadata {
        chip,
        pipelines: pipelines(root)?,
        ingress: gress_of(&INGRESS, DEFAULT_BYTES.0)?,
        egress: gress_of(&EGRESS, DEFAULT_BYTES.1)?,
        for_tm: TnaForTm {
            ucast_egress_port: need(FOR_TM, "ucast_egress_port")?,
            bypass_egress: tm("bypass_egress"),
            ingress_cos: tm("ingress_cos"),
            qid: tm("qid"),
            icos_for_copy_to_cpu: tm("icos_for_copy_to_cpu"),
            copy_to_cpu: tm("copy_to_cpu"),
            mcast_grp_a: tm("mcast_grp_a"),
            mcast_grp_b: tm("mcast_grp_b"),
            rid: tm("rid"),
            exclusions: ["level1_exclusion_id", "level2_exclusion_id"].map(tm),
            mcast_hashes: ["level1_mcast_hash", "level2_mcast_hash"].map(tm),
        },
        ghost: ghost(root, (names, mentions))?,
        generated: ["pktgen_address", "pktgen_length"]
            .map(|field| mentioned(INGRESS.for_deparser, field)),
        handles_parser_errors: mentions.has(INGRESS.from_parser, "parser_err"),
    })
}

/// Returns the metadata of ghost threads; `None` if no pipeline has one.
fn ghost(root: &Cursor, (names, mentions): (&Names, &Mentions)) -> Result<Option<TnaGhost>> {
    let mut has_ghost = false;
    for control in root.get("pipelines").items()? {
        let name = control.get("name");
        let name = name.str()?;
        has_ghost |= name.rsplit('.').next() == Some(GHOST);
    }
    let find = |field: &str| header_of(names, GHOST_METADATA)?.field(field);
    let has_versions = mentions.has(GHOST_METADATA, PING_PONG);
    Ok(has_ghost.then(|| TnaGhost {
        versions: if has_versions { 2 } else { 1 },
        ping_pong: find(PING_PONG),
        qlength: find("qlength"),
        qid: find("qid"),
        pipe_id: find("pipe_id"),
    }))
}

/// Returns the pipelines and which pipe runs which one.
fn pipelines(root: &Cursor) -> Result<Pipelines> {
    let mut names = Vec::new();
    for name in root.get("__meta__").get("pipes").items()? {
        names.push(name.str()?.to_owned());
    }
    Ok(Pipelines::new(names))
}

fn header_of<'a>(names: &'a Names, header: &str) -> Option<&'a Header> {
    let id = *names.headers.get(header)?;
    Some(&names.layout.headers[id as usize])
}

/// Returns the form of an intrinsic header by the names of its fields.
fn intrinsic(
    (names, mentions): (&Names, &Mentions),
    name: &str,
    default_bytes: usize,
) -> IntrinsicHeader {
    let Some(header) = header_of(names, name) else {
        return IntrinsicHeader {
            bytes: default_bytes,
            ..IntrinsicHeader::default()
        };
    };
    let mut first = 0;
    let (mut fields, mut mentioned) = (Vec::new(), Vec::new());
    for (field, own_name) in header.fields.iter().zip(&header.names) {
        if let Some(known) = IntrinsicField::by_name(own_name)
            && (1..=u64::BITS).contains(&field.width)
        {
            let width = field.width;
            fields.push((known, Bits { first, width }));
            if mentions.has(name, own_name) {
                mentioned.push((known, *field));
            }
        }
        first += field.width;
    }
    IntrinsicHeader {
        id: names.headers.get(name).copied(),
        bytes: header.fixed_bytes as usize,
        fields,
        mentioned,
    }
}
