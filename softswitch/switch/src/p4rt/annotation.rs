// SPDX-License-Identifier: Apache-2.0
//! Annotations in P4Info, which are text such as `@p4runtime_role("sdn")`.

/// Returns the bodies of all annotations with this name, without parentheses.
pub fn bodies<'a>(annotations: &'a [String], name: &'a str) -> impl Iterator<Item = &'a str> {
    annotations.iter().filter_map(move |annotation| {
        let rest = annotation.strip_prefix('@')?.strip_prefix(name)?;
        let body = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(body.trim())
    })
}

/// Returns the text of a body of string literals, which are concatenated.
///
/// # Errors
/// If it contains anything else.
pub fn text(body: &str) -> Result<String, String> {
    let fault = || format!("expected a string in double quotes, not `{body}`");
    let mut text = String::new();
    let mut rest = body.trim_start();
    if rest.is_empty() {
        return Err(fault());
    }
    while !rest.is_empty() {
        let literal = rest.strip_prefix('"').ok_or_else(fault)?;
        let mut chars = literal.char_indices();
        let end = loop {
            match chars.next().ok_or_else(fault)? {
                (at, '"') => break at,
                (_, '\\') => match chars.next().ok_or_else(fault)?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    other => text.push(other),
                },
                (_, other) => text.push(other),
            }
        };
        rest = literal[end + 1..].trim_start();
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_exactly_this_name() {
        let annotations = ["@a(1)", "@ab(2)", "@a", "@a ( 3 )", "a(4)"].map(String::from);
        assert_eq!(bodies(&annotations, "a").collect::<Vec<_>>(), ["1", "3"]);
    }

    #[test]
    fn string_literals_are_concatenated() {
        assert_eq!(text(r#""x == 1;" "y""#).unwrap(), "x == 1;y");
        assert_eq!(text(r#""a \"b\" \\ \n""#).unwrap(), "a \"b\" \\ \n");
        for body in ["", "x", "\"open", "\"a\" b", "\"a\\"] {
            assert!(text(body).is_err(), "{body}");
        }
    }
}
