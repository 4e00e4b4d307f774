// SPDX-License-Identifier: Apache-2.0
//! The Python class `Program`, compiled from P4 or loaded from BMv2 JSON.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use softswitch_pipeline as ss;

use crate::describe::{html, kind, writable};
use crate::{CompileError, error};

/// A program without state.
#[pyclass(frozen, module = "softswitch")]
pub struct Program {
    /// The name of the file.
    #[pyo3(get)]
    name: String,
    /// The program as BMv2 JSON.
    #[pyo3(get)]
    json: String,
    /// The P4Info as text, if the program was compiled from source.
    #[pyo3(get)]
    p4info: Option<String>,
    /// The compiler's warnings.
    #[pyo3(get)]
    warnings: String,
    pub inner: ss::Program,
}

#[pymethods]
impl Program {
    /// The tables by name: key (match kind and width in bits of each field), actions and size.
    #[getter]
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = PyDict::new(py);
        for t in writable(self.inner.info()) {
            let table = PyDict::new(py);
            let key = PyDict::new(py);
            for k in &t.key {
                key.set_item(&k.name, (kind(k.kind), k.width))?;
            }
            table.set_item("key", key)?;
            let actions: Vec<&str> = t.actions.iter().map(|(n, _)| n.as_str()).collect();
            table.set_item("actions", actions)?;
            table.set_item("size", t.size)?;
            tables.set_item(&t.name, table)?;
        }
        Ok(tables)
    }

    /// The actions by name: the width in bits of each parameter.
    #[getter]
    fn actions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let actions = PyDict::new(py);
        for a in &self.inner.info().actions {
            let params = PyDict::new(py);
            for (name, width) in &a.params {
                params.set_item(name, width)?;
            }
            actions.set_item(&a.name, params)?;
        }
        Ok(actions)
    }

    /// The registers by name: number of cells, and their width in bits.
    #[getter]
    fn registers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let registers = PyDict::new(py);
        for r in &self.inner.info().registers {
            registers.set_item(&r.name, (r.size, r.width))?;
        }
        Ok(registers)
    }

    /// The counters by name: number of cells.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = PyDict::new(py);
        for c in &self.inner.info().counters {
            counters.set_item(&c.name, c.size)?;
        }
        Ok(counters)
    }

    fn __repr__(&self) -> String {
        let tables = writable(self.inner.info()).count();
        format!("<softswitch.Program {}: {tables} tables>", self.name)
    }

    fn _repr_html_(&self) -> String {
        html(&self.name, self.inner.info())
    }
}

fn read(path: &Path) -> PyResult<String> {
    // Becomes an OSError, as in Python's own functions.
    std::fs::read_to_string(path).map_err(|e| {
        let text = format!("{}: {e}", path.display());
        std::io::Error::new(e.kind(), text).into()
    })
}

/// Compile a P4_16 file (v1model).
///
/// Includes are searched in its folder and in include_dirs; defines are preprocessor macros.
#[pyfunction]
#[pyo3(signature = (path, *, include_dirs=Vec::new(), defines=None))]
pub fn compile(
    py: Python<'_>,
    path: PathBuf,
    include_dirs: Vec<PathBuf>,
    defines: Option<Bound<'_, PyDict>>,
) -> PyResult<Program> {
    let name = path.display().to_string();
    compile_text(py, read(&path)?, &name, include_dirs, defines)
}

/// Compile P4_16 source (v1model); messages refer to it by name.
#[pyfunction]
#[pyo3(signature = (source, name="program.p4", *, include_dirs=Vec::new(), defines=None))]
pub fn compile_text(
    py: Python<'_>,
    source: String,
    name: &str,
    include_dirs: Vec<PathBuf>,
    defines: Option<Bound<'_, PyDict>>,
) -> PyResult<Program> {
    let mut macros = Vec::new();
    for (name, value) in defines.iter().flatten() {
        macros.push((name.str()?.to_string(), value.str()?.to_string()));
    }
    let compiled = py
        .detach(|| softswitch_stf::compile(name, source, include_dirs, macros))
        .map_err(CompileError::new_err)?;
    Ok(Program {
        name: name.to_owned(),
        json: compiled.json,
        p4info: Some(compiled.p4info),
        warnings: compiled.warnings,
        inner: compiled.program,
    })
}

/// Load a BMv2 JSON file from softswitch-p4c or p4c-bm2-ss.
#[pyfunction]
pub fn load(path: PathBuf) -> PyResult<Program> {
    load_text(read(&path)?, &path.display().to_string())
}

/// Load BMv2 JSON.
#[pyfunction]
#[pyo3(signature = (json, name="program.json"))]
pub fn load_text(json: String, name: &str) -> PyResult<Program> {
    let inner = ss::Program::load(&json).map_err(|e| error(format!("{name}: {e}")))?;
    Ok(Program {
        name: name.to_owned(),
        json,
        p4info: None,
        warnings: String::new(),
        inner,
    })
}

/// Run an STF script on a program without entries, and return the differences.
#[pyfunction]
pub fn run_stf(py: Python<'_>, program: &Program, script: &str) -> PyResult<Vec<String>> {
    let lines = softswitch_stf::parse(script).map_err(error)?;
    let found = py.detach(|| softswitch_stf::run(&program.inner, &lines));
    let found = found.map_err(error)?;
    Ok(found.iter().map(|d| format!("line {d}")).collect())
}
