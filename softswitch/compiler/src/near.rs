// SPDX-License-Identifier: Apache-2.0
//! Suggestions of similar names: "did you mean".

/// Returns the known name most similar to `name`, if one is similar; among equals the first in alphabetical order.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (distance(name, known), known))
        .filter(|(d, _)| *d <= 1 + name.len() / 4 && *d < name.len())
        .min()
        .map(|(_, known)| known)
}

/// Returns the hint for a message about an unknown name.
pub(crate) fn did_you_mean(near: &str) -> String {
    format!("did you mean '{near}'?")
}

/// Returns the edit distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let next = (diagonal + usize::from(ca != *cb))
                .min(row[j] + 1)
                .min(row[j + 1] + 1);
            diagonal = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}
