//! A compiler for P4_16 programs of the v1model architecture.
pub mod ast;
mod check;
pub mod diag;
mod ir;
mod lower;
mod parse;
mod pp;
mod token;
mod types;
pub fn parse_only(name: &str, inc: &[std::path::PathBuf], sources: &diag::SourceMap, diags: &diag::Diagnostics) {
    let f = sources.add(name.into(), std::fs::read_to_string(name).unwrap());
    let t = pp::preprocess(sources, diags, f, inc, &[]);
    let p = parse::parse(t, diags);
    if diags.has_errors() {
        return;
    }
    let t = check::check(&p, diags);
    if diags.has_errors() {
        return;
    }
    lower::lower(&t, diags, sources);
}
