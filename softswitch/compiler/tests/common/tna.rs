// SPDX-License-Identifier: Apache-2.0
//! A program for TNA or T2NA around the code of a test, and what its JSON contains.
#![allow(dead_code, reason = "not every test uses every helper")]

use serde_json::Value;
use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_p4c::{Options, Output, compile};

/// The parts of a program; the rest is fixed.
#[derive(Default)]
pub struct Parts<'a> {
    /// Declarations in the ingress parser, and statements after the extraction of `hdr.h`.
    pub parser: [&'a str; 2],
    /// Declarations in ingress, and statements in its `apply`.
    pub ingress: [&'a str; 2],
    /// The same for the ingress deparser.
    pub deparser: [&'a str; 2],
    /// The last declarations; by default the package.
    pub main: Option<&'a str>,
    /// The name of the include file.
    pub architecture: Option<&'a str>,
}

const MAIN: &str = "Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe; Switch(pipe) main;";

impl Parts<'_> {
    fn text(&self) -> String {
        let Parts {
            parser: [parser_locals, parsing],
            ingress: [locals, apply],
            deparser: [deparser_locals, deparsing],
            main,
            architecture,
        } = self;
        let (main, architecture) = (main.unwrap_or(MAIN), architecture.unwrap_or("tna"));
        format!(
            r"
#include <core.p4>
#include <{architecture}.p4>
header h_t {{ bit<8> a; bit<8> b; bit<16> c; bit<32> d; bit<32> e; }}
header odd_t {{ bit<8> a; @flexible bit<3> b; }}
struct H {{ h_t h; odd_t odd; }}
struct M {{ bit<8> x; bit<16> sum; bool flag; bool wrong; odd_t odd; }}
struct EH {{ h_t h; }}
struct EM {{}}
struct pair {{ bit<32> lo; bit<32> hi; }}
struct port_t {{ bit<16> vrf; bit<8> kind; }}
parser IP(packet_in pkt, out H hdr, out M md, out ingress_intrinsic_metadata_t intr) {{
    {parser_locals}
    state start {{
        pkt.extract(intr);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(hdr.h);
        {parsing}
        transition select(hdr.h.a) {{ 1: accept; 2: reject; }}
    }}
}}
control I(inout H hdr, inout M md, in ingress_intrinsic_metadata_t intr,
    in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
    inout ingress_intrinsic_metadata_for_tm_t tm) {{
    {locals}
    apply {{ tm.ucast_egress_port = 1; {apply} }}
}}
control ID(packet_out pkt, inout H hdr, in M md, in ingress_intrinsic_metadata_for_deparser_t dprsr) {{
    {deparser_locals}
    apply {{ {deparsing} pkt.emit(hdr); }}
}}
parser EP(packet_in pkt, out EH hdr, out EM md, out egress_intrinsic_metadata_t intr) {{
    state start {{ pkt.extract(intr); pkt.extract(hdr.h); transition accept; }}
}}
control E(inout EH hdr, inout EM md, in egress_intrinsic_metadata_t intr,
    in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
    inout egress_intrinsic_metadata_for_output_port_t oport) {{
    apply {{}}
}}
control ED(packet_out pkt, inout EH hdr, in EM md, in egress_intrinsic_metadata_for_deparser_t dprsr) {{
    apply {{ pkt.emit(hdr); }}
}}
{main}
"
        )
    }

    pub fn compile(&self) -> (Option<Output>, String) {
        let (sources, diags) = (SourceMap::default(), Diagnostics::default());
        let output = compile("t.p4", self.text(), &Options::default(), &sources, &diags);
        (output, diags.render(&sources))
    }

    pub fn output(&self) -> Output {
        let (output, messages) = self.compile();
        match output {
            Some(output) if output.json.is_some() => output,
            _ => panic!("{messages}"),
        }
    }

    pub fn json(&self) -> Value {
        self.output().json.expect("the target supports it")
    }

    /// Compiles the program, and returns the schema of BfRuntime.
    pub fn schema(&self) -> Value {
        let options = Options {
            bfrt: true,
            ..Options::default()
        };
        let (sources, diags) = (SourceMap::default(), Diagnostics::default());
        let output = compile("t.p4", self.text(), &options, &sources, &diags);
        let schema = output.and_then(|output| output.bfrt);
        schema.unwrap_or_else(|| panic!("{}", diags.render(&sources)))
    }

    pub fn rejected(&self, message: &str) {
        let (output, messages) = self.compile();
        assert!(output.and_then(|o| o.json).is_none(), "for {message}");
        assert!(
            messages.contains(message),
            "wanted {message}\ngot {messages}"
        );
    }
}

pub fn ingress<'a>(locals: &'a str, apply: &'a str) -> Parts<'a> {
    Parts {
        ingress: [locals, apply],
        ..Parts::default()
    }
}

pub fn list<'a>(v: &'a Value, key: &str) -> &'a [Value] {
    v[key].as_array().map_or(&[], |l| l)
}

pub fn named<'a>(v: &'a Value, key: &str, name: &str) -> &'a Value {
    let mut all = list(v, key).iter();
    all.find(|x| x["name"] == name)
        .unwrap_or_else(|| panic!("no {name} in {key}"))
}

pub fn names(v: &Value, key: &str) -> Vec<String> {
    let all = list(v, key).iter();
    all.map(|x| x["name"].as_str().unwrap().to_owned())
        .collect()
}

/// All operations of an operation's name: in actions, deparsers and parsers.
pub fn operations<'a>(json: &'a Value, op: &str) -> Vec<&'a [Value]> {
    let mut found = Vec::new();
    let mut todo = vec![json];
    while let Some(v) = todo.pop() {
        if v["op"] == op {
            found.push(list(v, "parameters"));
        }
        match v {
            Value::Array(items) => todo.extend(items),
            Value::Object(fields) => todo.extend(fields.values()),
            _ => {}
        }
    }
    found
}

pub fn attributes(json: &Value, name: &str) -> Vec<(String, Value)> {
    let instance = named(json, "extern_instances", name);
    let pair = |a: &Value| (a["name"].as_str().unwrap().to_owned(), a["value"].clone());
    list(instance, "attribute_values")
        .iter()
        .map(pair)
        .collect()
}

pub fn pairs(wanted: &[(&str, &str)]) -> Vec<(String, Value)> {
    let pair = |(a, b): &(&str, &str)| ((*a).to_owned(), Value::from(*b));
    wanted.iter().map(pair).collect()
}
