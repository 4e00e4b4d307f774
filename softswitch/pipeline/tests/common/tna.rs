// SPDX-License-Identifier: Apache-2.0
//! Small programs for TNA, as JSON: both parsers extract `hdr`, both deparsers emit it, and the test adds primitives.

use serde_json::{Value as Json, json};
use softswitch_pipeline::{Options, Pipeline, Program};

use super::options;
use super::tna_headers::HEADERS;

/// Length of `hdr` in bytes: `op` (8 bits), `arg` (8), `x` (16), `y` (32).
pub const HEADER_BYTES: usize = 8;

/// A program for Tofino 1 or 2.
pub struct Tna {
    document: Json,
}

/// A field as a parameter or an operand.
pub fn field(header: &str, field: &str) -> Json {
    json!({"type": "field", "value": [header, field]})
}

/// A number as a parameter or an operand.
pub fn number(value: u64) -> Json {
    json!({"type": "hexstr", "value": format!("{value:#x}")})
}

/// A call of a primitive.
pub fn call(op: &str, parameters: Vec<Json>) -> Json {
    json!({"op": op, "parameters": parameters})
}

/// The assignment to a field.
pub fn assign(to: (&str, &str), from: Json) -> Json {
    call("assign", vec![field(to.0, to.1), from])
}

/// A list of fields as a parameter.
pub fn list(fields: &[(&str, &str)]) -> Json {
    let fields: Vec<Json> = fields.iter().map(|f| field(f.0, f.1)).collect();
    json!({"type": "field_list", "value": fields})
}

/// An extern object as a parameter.
pub fn object(name: &str) -> Json {
    json!({"type": "extern", "value": name})
}

/// A jump to a primitive of the same list, unless `hdr.op` is `op`.
pub fn unless_op(op: u64, to: u64) -> Json {
    let is = json!({"op": "==", "left": field("hdr", "op"), "right": number(op)});
    let condition = json!({"type": "expression", "value": is});
    call("_jump_if_zero", vec![condition, number(to)])
}

fn header_type(name: &str, fields: &[(&str, u32)]) -> Json {
    let fields: Vec<Json> = fields.iter().map(|&(n, w)| json!([n, w, false])).collect();
    json!({"name": name, "id": 0, "fields": fields})
}

fn extract(header: &str) -> Json {
    json!({"op": "extract", "parameters": [{"type": "regular", "value": header}]})
}

fn advance(bits: u64) -> Json {
    json!({"op": "advance", "parameters": [number(bits)]})
}

fn goes_to(next: Option<&str>) -> Json {
    json!({"type": "default", "value": null, "mask": null, "next_state": next})
}

fn state(name: &str, ops: Vec<Json>, key: Vec<Json>, transitions: Vec<Json>) -> Json {
    json!({"name": name, "id": 0, "parser_ops": ops, "transition_key": key, "transitions": transitions})
}

impl Tna {
    /// Creates a program that drops all packets. `architecture` is `tna` or `t2na`.
    pub fn new(architecture: &str) -> Self {
        let types: Vec<Json> = HEADERS.iter().map(|h| header_type(h.0, h.2)).collect();
        let instances: Vec<Json> = (0..)
            .zip(HEADERS)
            .map(|(id, h): (u32, _)| json!({"name": h.0, "id": id, "header_type": h.0, "metadata": h.1}))
            .collect();
        let (resubmitted, skipped) = match architecture {
            "tna" => (vec![extract("data")], 64),
            _ => (vec![extract("data"), advance(128)], 192),
        };
        let flag = json!({"type": "field", "value": ["ig_intr_md", "resubmit_flag"]});
        let is_set =
            json!({"type": "hexstr", "value": "0x01", "mask": null, "next_state": "resubmitted"});
        let ingress_states = [
            state(
                "start",
                vec![extract("ig_intr_md")],
                vec![flag],
                vec![is_set, goes_to(Some("received"))],
            ),
            state(
                "resubmitted",
                resubmitted,
                vec![],
                vec![goes_to(Some("packet"))],
            ),
            state(
                "received",
                vec![advance(skipped)],
                vec![],
                vec![goes_to(Some("packet"))],
            ),
            state("packet", vec![extract("hdr")], vec![], vec![goes_to(None)]),
        ];
        let egress_states = [state(
            "start",
            vec![extract("eg_intr_md"), extract("hdr")],
            vec![],
            vec![goes_to(None)],
        )];
        let control = |name: &str, id: u32| {
            json!({
                "name": name, "id": id, "init_table": name, "tables": [], "conditionals": [], "action_profiles": [],
                "action_calls": [{"name": name, "id": id, "action_id": id, "next_node": null}],
            })
        };
        let action = |name: &str, id: u32| json!({"name": name, "id": id, "runtime_data": [], "primitives": []});
        let deparser =
            |name: &str| json!({"name": name, "id": 0, "order": ["data", "hdr"], "primitives": []});
        let document = json!({
            "__meta__": {"version": [2, 24], "architecture": architecture},
            "header_types": types,
            "headers": instances,
            "errors": [["NoError", 1], ["PacketTooShort", 2], ["NoMatch", 3]],
            "parsers": [
                {"name": "ingress_parser", "id": 0, "init_state": "start", "parse_states": ingress_states},
                {"name": "egress_parser", "id": 1, "init_state": "start", "parse_states": egress_states},
            ],
            "deparsers": [deparser("ingress_deparser"), deparser("egress_deparser")],
            "actions": [action("ingress", 0), action("egress", 1)],
            "pipelines": [control("ingress", 0), control("egress", 1)],
            "register_arrays": [],
            "extern_instances": [],
        });
        Self { document }
    }

    /// Adds a primitive to the list at a place in the document.
    fn push(mut self, at: &str, primitives: Vec<Json>) -> Self {
        let list = self.document.pointer_mut(at).expect("the place exists");
        list.as_array_mut().expect("a list").extend(primitives);
        self
    }

    pub fn ingress(self, primitives: Vec<Json>) -> Self {
        self.push("/actions/0/primitives", primitives)
    }

    pub fn egress(self, primitives: Vec<Json>) -> Self {
        self.push("/actions/1/primitives", primitives)
    }

    pub fn ingress_deparser(self, primitives: Vec<Json>) -> Self {
        self.push("/deparsers/0/primitives", primitives)
    }

    pub fn egress_deparser(self, primitives: Vec<Json>) -> Self {
        self.push("/deparsers/1/primitives", primitives)
    }

    /// Adds primitives behind the extraction of `hdr` in ingress.
    pub fn parser(self, primitives: Vec<Json>) -> Self {
        let step = |p: Json| json!({"op": "primitive", "parameters": [p]});
        let steps = primitives.into_iter().map(step).collect();
        self.push("/parsers/0/parse_states/3/parser_ops", steps)
    }

    /// Adds an extern object.
    pub fn object(self, name: &str, kind: &str, attributes: &[(&str, Json)]) -> Self {
        let attribute =
            |(name, value): &(&str, Json)| json!({"name": name, "type": "string", "value": value});
        let attributes: Vec<Json> = attributes.iter().map(attribute).collect();
        let object = json!({"name": name, "id": 0, "type": kind, "attribute_values": attributes});
        self.push("/extern_instances", vec![object])
    }

    /// Changes the document.
    pub fn with(mut self, at: &str, value: Json) -> Self {
        *self.document.pointer_mut(at).expect("the place exists") = value;
        self
    }

    /// Adds an item to a list of the document.
    pub fn and(self, at: &str, value: Json) -> Self {
        self.push(at, vec![value])
    }

    pub fn program(&self) -> Program {
        Program::load(&self.document.to_string()).unwrap_or_else(|e| panic!("{e}"))
    }

    pub fn pipeline(&self) -> Pipeline {
        self.pipeline_with(options())
    }

    pub fn pipeline_with(&self, options: Options) -> Pipeline {
        Pipeline::new(self.program(), options)
    }
}

/// A packet with `hdr` and a payload.
pub fn packet(op: u8, arg: u8, x: u16, y: u32) -> Vec<u8> {
    let [x, y] = [x.to_be_bytes().to_vec(), y.to_be_bytes().to_vec()];
    [&[op, arg][..], &x, &y, b"payload"].concat()
}
