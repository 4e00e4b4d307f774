// SPDX-License-Identifier: Apache-2.0
//! Small programs for single features: one header of two bytes, `h.h.a` and `h.h.b`, and an ingress control.

use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_pipeline::Program;

/// The parts of the program.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// Fields of the user metadata `m`.
    pub metadata: &'a str,
    /// Body of the ingress control.
    pub ingress: &'a str,
    /// Body of the egress control.
    pub egress: &'a str,
}

impl Default for Source<'_> {
    fn default() -> Self {
        Self {
            metadata: "",
            ingress: "apply { }",
            egress: "apply { }",
        }
    }
}

/// Compiles a program with this ingress control.
pub fn ingress(ingress: &str) -> Program {
    Source {
        ingress,
        ..Source::default()
    }
    .compile()
}

impl Source<'_> {
    /// Compiles the program.
    pub fn compile(self) -> Program {
        Program::load(&self.json()).expect("valid JSON")
    }

    /// Returns the program as JSON.
    pub fn json(self) -> String {
        let Self {
            metadata,
            ingress,
            egress,
        } = self;
        let text = format!(
            "#include <core.p4>
        #include <v1model.p4>
        header h_t {{ bit<8> a; bit<8> b; }}
        struct H {{ h_t h; h_t x; }}
        struct M {{ {metadata} }}
        parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{
            state start {{ p.extract(h.h); transition accept; }}
        }}
        control V(inout H h, inout M m) {{ apply {{ }} }}
        control I(inout H h, inout M m, inout standard_metadata_t s) {{ {ingress} }}
        control E(inout H h, inout M m, inout standard_metadata_t s) {{ {egress} }}
        control D(packet_out p, in H h) {{ apply {{ p.emit(h); }} }}
        V1Switch(P(), V(), I(), E(), V(), D()) main;"
        );
        let compiled = softswitch_p4c::on_deep_stack(move || {
            let (sources, diags) = (SourceMap::default(), Diagnostics::default());
            let options = softswitch_p4c::Options::default();
            let output = softswitch_p4c::compile("small.p4", text, &options, &sources, &diags);
            let json = output.and_then(|o| Some(o.json?.to_string()));
            json.ok_or_else(|| diags.render(&sources))
        });
        let json = compiled.expect("a thread").expect("no panic");
        json.unwrap_or_else(|messages| panic!("{messages}"))
    }
}
