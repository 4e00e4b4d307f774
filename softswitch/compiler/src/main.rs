fn main() {
    let s = softswitch_p4c::diag::SourceMap::default();
    let d = softswitch_p4c::diag::Diagnostics::default();
    let n = std::env::args().nth(1).unwrap();
    softswitch_p4c::parse_only(&n, &[], &s, &d);
    print!("{}", d.render(&s));
    std::process::exit(d.has_errors() as i32);
}
