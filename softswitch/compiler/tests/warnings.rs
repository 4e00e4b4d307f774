//! What is not wrong but may not be meant.

mod common;

/// Compiles a program with these declarations; the warnings of one kind, as line and column.
fn warnings(kind: &str, declarations: &str) -> Vec<String> {
    let text = format!(
        "header h_t {{ bit<8> a; }} struct s_t {{ bit<8> a; bit<8> b; }}\n{declarations}\n"
    );
    let tag = format!(" [--Wwarn={kind}]");
    let messages = common::compile_text("t.p4", &text).1;
    let lines = messages.lines().filter(|line| line.ends_with(&tag));
    let place = |line: &str| line.split(": ").next().unwrap_or("").replace("t.p4:", "");
    lines.map(place).collect()
}

#[test]
fn shifts_leave_something() {
    let shifts = "const bit<8> X = 8w1 << 7;\nconst bit<8> Y = 8w1 << 8;\nconst int Z = 1 << 8;";
    assert_eq!(warnings("overflow", shifts), ["3:18"]);
}
