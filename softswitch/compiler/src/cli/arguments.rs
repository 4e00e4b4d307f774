// SPDX-License-Identifier: Apache-2.0
//! The arguments before parsing: `@FILE`, and the forms of options that only GCC and p4c have.

use std::ffi::OsString;
use std::path::Path;

/// Options of several letters behind one hyphen.
const LONG: &[&str] = &[
    "-M",
    "-MD",
    "-MF",
    "-MG",
    "-MP",
    "-MT",
    "-MQ",
    "-###",
    "-Xp4c",
    "-Xpreprocessor",
    "-Xassembler",
    "-Xlinker",
];

/// Returns the command line in the forms that the parser knows: with the arguments in `@FILE` put in its place, and long
/// options with two hyphens. `as_driver` is true for the options of the driver `p4c`.
///
/// # Errors
/// If a file cannot be read.
pub fn read(
    args: impl IntoIterator<Item = OsString>,
    as_driver: bool,
) -> Result<Vec<OsString>, String> {
    let mut all = Vec::new();
    for arg in args {
        match arg.to_str().and_then(|a| a.strip_prefix('@')) {
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .map_err(|e| format!("cannot read {file}: {e}"))?;
                all.extend(text.split_whitespace().map(OsString::from));
            }
            None => all.push(arg),
        }
    }
    let mut out: Vec<OsString> = Vec::new();
    for arg in all {
        match out.last_mut() {
            Some(option) if as_driver && is_value(option, &arg) => {
                option.push("=");
                option.push(arg);
            }
            _ => out.push(long_form(arg)),
        }
    }
    Ok(out)
}

/// Returns the argument with two hyphens if it is an option of several letters. The level of `-O` may follow it directly.
fn long_form(arg: OsString) -> OsString {
    let Some(text) = arg.to_str() else {
        return arg;
    };
    if LONG.contains(&text) {
        return format!("-{text}").into();
    }
    match text.strip_prefix("-O") {
        Some("") => "--O".into(),
        Some(level) => format!("--O={level}").into(),
        None => arg,
    }
}

/// Options whose values the driver separates by a space, and p4c-bm2-ss by `=`.
const SEPARATED: &[&str] = &[
    "--Wdisable",
    "--Werror",
    "--disable-annotations",
    "--disable-annotation",
    "--disable-pragmas",
    "--disable-pragma",
];

/// Returns true if an argument is the value of the option before it.
fn is_value(option: &OsString, arg: &OsString) -> bool {
    let takes_value = SEPARATED.iter().any(|s| option == s);
    let is_program = Path::new(arg)
        .extension()
        .is_some_and(|e| e == "p4" || e == "p4i");
    takes_value && !is_program && !arg.to_string_lossy().starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(args: &str, as_driver: bool) -> String {
        let args = args.split_whitespace().map(OsString::from);
        let read = read(args, as_driver).unwrap();
        let read: Vec<_> = read.iter().map(|a| a.to_str().unwrap()).collect();
        read.join(" ")
    }

    #[test]
    fn gcc_forms_become_long_options() {
        assert_eq!(
            forms("p4c -MF f -M -O2 -O -o out -DM", false),
            "p4c --MF f --M --O=2 --O -o out -DM"
        );
    }

    #[test]
    fn separated_values_belong_to_the_driver_option_before_them() {
        assert_eq!(
            forms("p4c --Wdisable unused a.p4", true),
            "p4c --Wdisable=unused a.p4"
        );
        assert_eq!(forms("p4c --Werror a.p4", true), "p4c --Werror a.p4");
        assert_eq!(forms("p4c --Werror -g a.p4", true), "p4c --Werror -g a.p4");
        assert_eq!(
            forms("x --Wdisable unused a.p4", false),
            "x --Wdisable unused a.p4"
        );
    }
}
