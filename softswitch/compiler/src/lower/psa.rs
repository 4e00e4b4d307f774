// SPDX-License-Identifier: Apache-2.0
//! The package PSA_Switch of the Portable Switch Architecture.

use super::value::Val;
use super::{Lower, Place};
use crate::ast::Decl;
use crate::ir::{Parser, Scalar, Target};
use crate::types::Type;

/// Parameters of PSA_Switch, IngressPipeline and EgressPipeline that are blocks, by their position.
const PIPELINES: [(usize, &str); 2] = [(0, "ingress"), (2, "egress")];
const INGRESS: [(usize, &str); 3] = [(0, "ip"), (1, "ig"), (2, "id")];
const EGRESS: [(usize, &str); 3] = [(0, "ep"), (1, "eg"), (2, "ed")];

/// Enumerations that metadata contain.
const ENUMS: [&str; 2] = ["PSA_PacketPath_t", "PSA_MeterColor_t"];

/// Storage of the metadata that one gress hands to the next parser.
struct Handed {
    normal: Val,
    clone_i2e: Val,
    clone_e2e: Val,
    resubmit: Val,
    recirculate: Val,
}

impl<'a> Lower<'a> {
    /// Lowers the blocks of `main` for the types of both gresses' headers and metadata, and those of `handed` metadata.
    pub(super) fn psa_switch(
        &mut self,
        main: &'a Decl,
        [ih, im, eh, em]: [&Type; 4],
        handed: &[Type],
    ) {
        for name in ENUMS {
            let members = self.member_names(name);
            self.ir.enums.push((name.to_owned(), members));
        }
        for headers in [ih, eh] {
            self.reserve_header_names(headers);
        }
        let ingress_meta = self.allocate(im, "userMetadata");
        let ingress_headers = self.allocate_headers(ih);
        // Each gress parses the packet anew, so both can share what has the same type.
        let egress_headers = match ih == eh {
            true => ingress_headers.clone(),
            false => self.allocate(eh, "egress"),
        };
        let egress_meta = match im == em {
            true => ingress_meta.clone(),
            false => self.allocate(em, "egressMetadata"),
        };
        let handed = self.handed(handed);
        self.handed_lists(&handed);
        self.other_instances(main);
        let Some((ingress, egress)) = self.psa_blocks(main) else {
            return;
        };
        self.psa_ingress(ingress, &ingress_headers, &ingress_meta, &handed);
        self.psa_egress(egress, &egress_headers, &egress_meta, &handed);
        self.check_direct_calls("psa_direct_counter or psa_direct_meter");
        self.unread_meters();
        self.unattached_meters();
        let [ip, ig, id] = ingress;
        let [ep, eg, ed] = egress;
        self.collect_visible(&[ip, ig, id, ep, eg, ed]);
    }

    /// Allocates the metadata between gresses: normal, clones from ingress and egress, resubmitted, recirculated.
    fn handed(&mut self, types: &[Type]) -> Handed {
        let mut allocate = |i: usize, name: &str| match types.get(i) {
            Some(ty) => self.allocate(ty, name),
            None => Val::Unit,
        };
        Handed {
            normal: allocate(0, "normalMetadata"),
            clone_i2e: allocate(1, "cloneI2eMetadata"),
            clone_e2e: allocate(2, "cloneE2eMetadata"),
            resubmit: allocate(3, "resubmitMetadata"),
            recirculate: allocate(4, "recirculateMetadata"),
        }
    }

    /// Names the fields of metadata between gresses for the target. Those of normal packets stay in place, and `psa_switch`
    /// ignores the others.
    fn handed_lists(&mut self, handed: &Handed) {
        for (name, metadata) in [
            ("psa_clone_i2e", &handed.clone_i2e),
            ("psa_clone_e2e", &handed.clone_e2e),
            ("psa_resubmit", &handed.resubmit),
            ("psa_recirculate", &handed.recirculate),
        ] {
            let fields = self.leaves(metadata);
            if !fields.is_empty() {
                self.field_list(name, fields);
            }
        }
    }

    fn psa_blocks(&mut self, main: &'a Decl) -> Option<([usize; 3], [usize; 3])> {
        let package = self.package_arguments(main)?;
        let mut pipelines = [None, None];
        for (pipeline, (position, name)) in pipelines.iter_mut().zip(PIPELINES) {
            match package.get(position) {
                Some(Val::Package { args, .. }) => *pipeline = Some(args.clone()),
                _ => self.missing_block(main, name),
            }
        }
        let [Some(ingress), Some(egress)] = pipelines else {
            return None;
        };
        let blocks = |values: &[Val], names: [(usize, &str); 3]| {
            let mut found = [0; 3];
            for (block, (position, name)) in found.iter_mut().zip(names) {
                match values.get(position) {
                    Some(Val::Block(b)) => *block = *b,
                    _ => {
                        self.missing_block(main, name);
                        return None;
                    }
                }
            }
            Some(found)
        };
        Some((blocks(&ingress, INGRESS)?, blocks(&egress, EGRESS)?))
    }

    fn psa_ingress(
        &mut self,
        [parser, control, deparser]: [usize; 3],
        headers: &Val,
        meta: &Val,
        handed: &Handed,
    ) {
        let parser_input = self.psa_metadata("psa_ingress_parser_input_metadata");
        let input = self.psa_metadata("psa_ingress_input_metadata");
        let output = self.psa_metadata("psa_ingress_output_metadata");
        let (headers, meta) = (headers.clone(), meta.clone());
        let resubmit = handed.resubmit.clone();
        let recirculate = handed.recirculate.clone();
        let values = [
            Val::Unit,
            headers.clone(),
            meta.clone(),
            parser_input,
            resubmit.clone(),
            recirculate,
        ];
        self.gress_parser("ingress_parser", parser, &values);
        let values = [headers.clone(), meta.clone(), input, output.clone()];
        let block = self.block("ingress", control, &values, Place::Control);
        self.ir.pipelines.push(block);
        let (clone, normal) = (handed.clone_i2e.clone(), handed.normal.clone());
        let values = [Val::Unit, clone, resubmit, normal, headers, meta, output];
        let block = self.block("ingress_deparser", deparser, &values, Place::Deparser);
        self.ir.deparsers.push(block);
    }

    fn psa_egress(
        &mut self,
        [parser, control, deparser]: [usize; 3],
        headers: &Val,
        meta: &Val,
        handed: &Handed,
    ) {
        let parser_input = self.psa_metadata("psa_egress_parser_input_metadata");
        let input = self.psa_metadata("psa_egress_input_metadata");
        let output = self.psa_metadata("psa_egress_output_metadata");
        let deparser_input = self.psa_metadata("psa_egress_deparser_input_metadata");
        let (headers, meta) = (headers.clone(), meta.clone());
        let clone = handed.clone_e2e.clone();
        let values = [
            Val::Unit,
            headers.clone(),
            meta.clone(),
            parser_input,
            handed.normal.clone(),
            handed.clone_i2e.clone(),
            clone.clone(),
        ];
        self.gress_parser("egress_parser", parser, &values);
        self.pipeline = 1;
        let values = [headers.clone(), meta.clone(), input, output.clone()];
        let block = self.block("egress", control, &values, Place::Control);
        self.ir.pipelines.push(block);
        self.pipeline = 0;
        let recirculate = handed.recirculate.clone();
        let values = [
            Val::Unit,
            clone,
            recirculate,
            headers,
            meta,
            output,
            deparser_input,
        ];
        let block = self.block("egress_deparser", deparser, &values, Place::Deparser);
        self.ir.deparsers.push(block);
    }

    /// Direct meters whose colour the program does not read get a variable for it.
    pub(super) fn unread_meters(&mut self) {
        let attached: Vec<usize> = self.ir.tables.iter().filter_map(|t| t.meter).collect();
        for object in attached {
            if self.ir.objects[object].meter_target.is_none() {
                self.ir.objects[object].meter_target = Some(self.temp(Scalar::Bit(32)));
            }
        }
    }

    /// Lowers the parser of ingress or egress.
    pub(super) fn gress_parser(&mut self, name: &str, block: usize, values: &[Val]) {
        self.bind_top(block, values);
        self.first_state = self.ir.states.len();
        let start_state = self.parser_states(block, "", Target::Accept);
        let name = name.to_owned();
        self.ir.parsers.push(Parser { name, start_state });
    }

    /// Creates the instance of one of PSA's metadata structs.
    fn psa_metadata(&mut self, name: &str) -> Val {
        self.metadata_struct(&format!("{name}_t"), name)
    }
}
