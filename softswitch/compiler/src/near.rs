//! Names that may be meant: "did you mean".

/// The known name that is most like `name`, if one is like it; of equals the first of the alphabet.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (distance(name, known), known))
        .filter(|(d, _)| *d <= 1 + name.len() / 4 && *d < name.len())
        .min()
        .map(|(_, known)| known)
}

/// The hint that goes with the message that there is no such name.
pub(crate) fn did_you_mean(near: &str) -> String {
    format!("did you mean '{near}'?")
}

/// Edit distance.
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
