// SPDX-License-Identifier: Apache-2.0
//! Finds out for which architecture a program was written, and resolves the architecture's fields.

use std::collections::HashMap;

use super::cursor::Cursor;
use super::headers::Names as HeaderNames;
use super::mentions::Mentions;
use crate::error::LoadError;
use crate::phv::Field;
use crate::program::architecture::{
    Architecture, PsaHanded, PsaIngressOutput, PsaInput, PsaMetadata, PsaOutput, PsaParserInput,
    Standard,
};
use crate::program::pipelines::GHOST;
use crate::program::tna::Chip;

type Result<T> = std::result::Result<T, LoadError>;

/// The names of an architecture's blocks in a document, in the architecture's order.
struct Names {
    /// The architecture's name.
    architecture: &'static str,
    parsers: &'static [&'static str],
    controls: &'static [&'static str],
    deparsers: &'static [&'static str],
}

/// A kind of blocks.
#[derive(Clone, Copy)]
pub(crate) enum BlockKind {
    Parser,
    Control,
    Deparser,
}

/// The names of a program's blocks. If it has several pipelines, the names of blocks begin with those of the pipelines.
pub(crate) struct BlockNames<'a> {
    names: &'static Names,
    pipelines: &'a [String],
    /// True if pipelines may have a ghost thread. Its controls follow all others.
    has_ghost: bool,
}

const V1MODEL: Names = Names {
    architecture: "v1model",
    parsers: &["parser"],
    controls: &["ingress", "egress"],
    deparsers: &["deparser"],
};

const PSA: Names = Names {
    architecture: "PSA",
    parsers: &["ingress_parser", "egress_parser"],
    controls: &["ingress", "egress"],
    deparsers: &["ingress_deparser", "egress_deparser"],
};

const TNA: Names = Names {
    architecture: "TNA",
    ..PSA
};

impl<'a> BlockNames<'a> {
    pub(crate) fn of(architecture: &'a Architecture) -> Self {
        let (names, pipelines, has_ghost) = match architecture {
            Architecture::V1Model(_) => (&V1MODEL, &[][..], false),
            Architecture::Psa(_) => (&PSA, &[][..], false),
            Architecture::Tna(m) => (&TNA, m.pipelines.names(), m.ghost.is_some()),
        };
        Self {
            names,
            pipelines,
            has_ghost,
        }
    }

    fn known(&self, kind: BlockKind) -> &'static [&'static str] {
        match kind {
            BlockKind::Parser => self.names.parsers,
            BlockKind::Control => self.names.controls,
            BlockKind::Deparser => self.names.deparsers,
        }
    }

    /// Returns the number of pipelines.
    fn pipelines(&self) -> usize {
        self.pipelines.len().max(1)
    }

    /// Returns the number of blocks of a kind.
    pub(crate) fn count(&self, kind: BlockKind) -> usize {
        let pipelines = self.pipelines();
        let ghosts = match kind {
            BlockKind::Control if self.has_ghost => pipelines,
            _ => 0,
        };
        self.known(kind).len() * pipelines + ghosts
    }

    /// Returns the position of a block among those of its kind, by its name.
    pub(crate) fn position(&self, kind: BlockKind, block: &Cursor) -> Result<usize> {
        let known = self.known(kind);
        let name = block.get("name").str()?;
        let mut pipelines = self.pipelines.iter().enumerate();
        let of_pipeline = pipelines.find_map(|(i, pipeline)| {
            let local = name.strip_prefix(pipeline.as_str())?.strip_prefix('.')?;
            Some((i, local))
        });
        let (pipeline, local) = match self.pipelines {
            [] => (0, name),
            _ => of_pipeline.unwrap_or((0, "")),
        };
        let position = known.iter().position(|k| *k == local);
        let position = position.map(|position| pipeline * known.len() + position);
        let is_ghost = matches!(kind, BlockKind::Control) && self.has_ghost && local == GHOST;
        let ghost = known.len() * self.pipelines() + pipeline;
        position.or(is_ghost.then_some(ghost)).ok_or_else(|| {
            let what = match kind {
                BlockKind::Parser => "parser",
                BlockKind::Control => "pipeline",
                BlockKind::Deparser => "deparser",
            };
            block.get("name").error(format!(
                "unknown {what} {name}: {} has {}",
                self.names.architecture,
                known.join(" and ")
            ))
        })
    }
}

/// Determines a program's architecture by its name, or else by its metadata.
pub(crate) fn load(root: &Cursor, names: &HeaderNames) -> Result<Architecture> {
    let name = root.get("__meta__").get("architecture");
    if let Some(chip) = name.opt_str()?.and_then(Chip::of) {
        let metadata = super::tna::load(root, names, chip)?;
        return Ok(Architecture::Tna(Box::new(metadata)));
    }
    if names.headers.contains_key(PSA_INGRESS_PARSER_INPUT) {
        return Ok(Architecture::Psa(Box::new(psa(root, names)?)));
    }
    Ok(Architecture::V1Model(Box::new(standard(root, names)?)))
}

/// The metadata that tells a PSA program from a v1model program.
const PSA_INGRESS_PARSER_INPUT: &str = "psa_ingress_parser_input_metadata";

/// Finds PSA's fields, which the compiler names after their structs.
fn psa(root: &Cursor, names: &HeaderNames) -> Result<PsaMetadata> {
    let need = |header: &str, field: &str| {
        let id = names.headers.get(header);
        id.and_then(|&id| names.layout.headers[id as usize].field(field))
            .filter(|f| f.width <= 64)
            .ok_or_else(|| {
                root.get("headers")
                    .error(format!("{header}.{field} is missing"))
            })
    };
    let output = |header: &str| {
        Ok::<_, LoadError>(PsaOutput {
            clone: need(header, "clone")?,
            clone_session: need(header, "clone_session_id")?,
            drop: need(header, "drop")?,
        })
    };
    let gress = |gress: &str| {
        let parser = format!("psa_{gress}_parser_input_metadata");
        let input = format!("psa_{gress}_input_metadata");
        let port = format!("{gress}_port");
        let parser = PsaParserInput {
            port: need(&parser, &port)?,
            packet_path: need(&parser, "packet_path")?,
        };
        let input = PsaInput {
            port: need(&input, &port)?,
            packet_path: need(&input, "packet_path")?,
            timestamp: need(&input, &format!("{gress}_timestamp"))?,
            parser_error: need(&input, "parser_error")?,
        };
        Ok::<_, LoadError>((parser, input))
    };
    let mut handed = PsaHanded::default();
    for list in root.get("field_lists").items()? {
        let fields = match list.get("name").str()? {
            "psa_clone_i2e" => &mut handed.clone_i2e,
            "psa_clone_e2e" => &mut handed.clone_e2e,
            "psa_resubmit" => &mut handed.resubmit,
            "psa_recirculate" => &mut handed.recirculate,
            _ => continue,
        };
        *fields = super::field_list(&list, names)?;
    }
    let (ingress_parser, ingress) = gress("ingress")?;
    let (egress_parser, egress) = gress("egress")?;
    let decisions = "psa_ingress_output_metadata";
    Ok(PsaMetadata {
        ingress_parser,
        ingress,
        ingress_output: PsaIngressOutput {
            common: output(decisions)?,
            class_of_service: need(decisions, "class_of_service")?,
            resubmit: need(decisions, "resubmit")?,
            multicast_group: need(decisions, "multicast_group")?,
            egress_port: need(decisions, "egress_port")?,
        },
        egress_parser,
        egress,
        instance: need("psa_egress_input_metadata", "instance")?,
        class_of_service: need("psa_egress_input_metadata", "class_of_service")?,
        egress_output: output("psa_egress_output_metadata")?,
        deparser_port: need("psa_egress_deparser_input_metadata", "egress_port")?,
        handed,
    })
}

/// Finds v1model's fields by alias, by BMv2's names, or in v1model's struct.
fn standard(root: &Cursor, names: &HeaderNames) -> Result<Standard> {
    let mut mentions = Mentions::default();
    mentions.add(root.json);
    let in_header = |header: &str, field: &str| {
        let id = *names.headers.get(header)?;
        let found = names.layout.headers[id as usize].field(field)?;
        Some((found, mentions.has(header, field)))
    };
    let mut aliases = HashMap::new();
    for alias in root.get("field_aliases").items()? {
        let [from, to] = alias.tuple()?;
        let [header, field] = to.tuple()?;
        let found = in_header(header.str()?, field.str().unwrap_or(""));
        aliases.insert(from.str()?, found.ok_or_else(|| to.error("unknown field"))?);
    }
    let find = |group: &str, field: &str| -> Option<(Field, bool)> {
        let full = format!("{group}.{field}");
        aliases
            .get(full.as_str())
            .copied()
            .or_else(|| in_header(group, field))
            .or_else(|| in_header("standard_metadata", field))
    };
    let need = |field: &str| {
        find("standard_metadata", field)
            .map(|(found, _)| found)
            .filter(|f| f.width <= 64)
            .ok_or_else(|| {
                root.get("headers")
                    .error(format!("standard_metadata.{field} is missing"))
            })
    };
    let mentioned = |group: &str, field: &str| {
        let (found, is_mentioned) = find(group, field)?;
        is_mentioned.then_some(found)
    };
    Ok(Standard {
        ingress_port: need("ingress_port")?,
        egress_spec: need("egress_spec")?,
        instance_type: need("instance_type")?,
        packet_length: need("packet_length")?,
        mcast_grp: mentioned("intrinsic_metadata", "mcast_grp"),
        egress_rid: mentioned("intrinsic_metadata", "egress_rid"),
        priority: mentioned("intrinsic_metadata", "priority"),
        ingress_timestamp: mentioned("intrinsic_metadata", "ingress_global_timestamp"),
        inputs: [
            vec![
                mentioned("standard_metadata", "parser_error"),
                mentioned("standard_metadata", "checksum_error"),
            ],
            vec![
                mentioned("intrinsic_metadata", "egress_global_timestamp"),
                mentioned("queueing_metadata", "enq_timestamp"),
                mentioned("queueing_metadata", "enq_qdepth"),
                mentioned("queueing_metadata", "deq_timedelta"),
                mentioned("queueing_metadata", "deq_qdepth"),
                mentioned("queueing_metadata", "qid"),
                Some(need("egress_port")?),
                Some(need("egress_spec")?),
                Some(need("packet_length")?),
            ],
        ],
    })
}
