// SPDX-License-Identifier: Apache-2.0
//! Metadata that nothing sets before ingress.

use super::cursor::Cursor;
use super::headers::Names;
use super::mentions::Mentions;
use crate::error::LoadError;
use crate::phv::{Place, Word};
use crate::program::architecture::Architecture;

/// Members of the document with the parser, and with the fields that packets keep when they return to it.
const EARLIER: [&str; 2] = ["parsers", "field_lists"];
/// The headers that v1model sets.
const STANDARD: [&str; 3] = [
    "standard_metadata",
    "intrinsic_metadata",
    "queueing_metadata",
];

/// Returns the metadata fields of up to 64 bits that are zero in each packet when ingress begins; none for architectures other
/// than v1model.
pub(super) fn at_ingress(
    root: &Cursor,
    names: &Names,
    architecture: &Architecture,
) -> Result<Vec<Word>, LoadError> {
    if !matches!(architecture, Architecture::V1Model(_)) {
        return Ok(Vec::new());
    }
    let mut set = Mentions::default();
    for member in EARLIER {
        set.add(root.get(member).json);
    }
    for alias in root.get("field_aliases").items()? {
        let [_, to] = alias.tuple()?;
        set.add(to.json);
    }
    let headers = names.layout.headers.iter();
    let metadata = headers.filter(|h| h.metadata && !STANDARD.contains(&h.name.as_str()));
    let fields = metadata.flat_map(|h| h.names.iter().zip(&h.fields).map(move |f| (h, f)));
    let zero = fields.filter_map(|(header, (name, field))| match field.place {
        Place::Word(word) if !set.has(&header.name, name) => Some(word),
        _ => None,
    });
    Ok(zero
        .filter(|word| !names.layout.has_temporary(word))
        .collect())
}

#[cfg(test)]
mod tests {
    use crate::load;
    use crate::phv::Place;

    #[test]
    fn fields_that_are_set_before_ingress_are_not_zero() {
        let json = include_str!("../../tests/programs/everything.json");
        let c = load::program(json).unwrap();
        let is_zero = |header: &str, name: &str| {
            let header = c.layout.headers.iter().find(|h| h.name == header);
            let field = header.and_then(|h| h.field(name)).unwrap();
            let mut zero = c.zero_at_ingress.iter();
            zero.any(|&word| field.place == Place::Word(word))
        };
        assert!(is_zero("scalars", "meta_t.hash"));
        assert!(!is_zero("scalars", "meta_t.lost"), "a temporary field");
        assert!(!is_zero("scalars", "len_0"), "the parser sets it");
        assert!(
            !is_zero("scalars", "meta_t.kept"),
            "recirculated packets have it"
        );
        assert!(!is_zero("standard_metadata", "packet_length"));
    }
}
