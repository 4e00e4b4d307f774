// SPDX-License-Identifier: Apache-2.0
//! The Python class `Trace`, with HTML for notebooks.

use pyo3::prelude::*;
use pyo3::types::PyList;
use softswitch_pipeline as ss;

use crate::describe::escape;

/// The trace of packets.
#[pyclass(frozen, module = "softswitch")]
pub struct Trace {
    passes: Vec<ss::Trace>,
}

impl Trace {
    pub fn new(passes: Vec<ss::Trace>) -> Self {
        Self { passes }
    }

    /// Returns the passes as text, packet by packet.
    fn paragraphs(&self) -> Vec<String> {
        let mut paragraphs: Vec<(u64, String)> = Vec::new();
        for pass in &self.passes {
            match paragraphs.last_mut() {
                Some((packet, text)) if *packet == pass.packet => text.push_str(&pass.to_string()),
                _ => paragraphs.push((pass.packet, pass.to_string())),
            }
        }
        paragraphs.into_iter().map(|(_, text)| text).collect()
    }
}

#[pymethods]
impl Trace {
    /// The passes as dictionaries; docs/tracing.md describes them.
    #[getter]
    fn passes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let json = serde_json::to_string(&self.passes).map_err(crate::error)?;
        let list = py.import("json")?.call_method1("loads", (json,))?;
        Ok(list.cast_into()?)
    }

    fn __len__(&self) -> usize {
        self.passes.len()
    }

    fn __str__(&self) -> String {
        self.paragraphs().join("\n")
    }

    fn __repr__(&self) -> String {
        self.__str__()
    }

    fn _repr_html_(&self) -> String {
        let packet = |text: &String| {
            let (head, rest) = text.split_once('\n').unwrap_or((text, ""));
            format!(
                "<details open><summary>{}</summary><pre>{}</pre></details>",
                escape(head),
                escape(rest)
            )
        };
        self.paragraphs().iter().map(packet).collect()
    }
}
