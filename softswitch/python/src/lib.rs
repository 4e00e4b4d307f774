// SPDX-License-Identifier: Apache-2.0
//! The native half of the Python package `softswitch`. Doc comments of exported items are the Python docstrings.

mod convert;
mod describe;
mod entries;
mod pipeline;
mod program;
mod trace;

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(softswitch, Error, PyException);
create_exception!(softswitch, CompileError, Error);

/// Converts an error to [`Error`].
fn error(e: impl ToString) -> PyErr {
    Error::new_err(e.to_string())
}

#[pymodule]
fn _softswitch(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("Error", m.py().get_type::<Error>())?;
    m.add("CompileError", m.py().get_type::<CompileError>())?;
    m.add_class::<program::Program>()?;
    m.add_class::<pipeline::Pipeline>()?;
    m.add_class::<trace::Trace>()?;
    m.add_function(wrap_pyfunction!(program::compile, m)?)?;
    m.add_function(wrap_pyfunction!(program::compile_text, m)?)?;
    m.add_function(wrap_pyfunction!(program::load, m)?)?;
    m.add_function(wrap_pyfunction!(program::load_text, m)?)?;
    m.add_function(wrap_pyfunction!(program::run_stf, m)?)
}
