// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;
use softswitch_pipeline::Value;

use super::counts::{Counts, Dangling, Facts};

fn facts(entries: &[u32], references: &[u32]) -> Facts {
    let keys = |numbers: &[u32]| numbers.iter().map(|n| (0, vec![Value::from(*n)])).collect();
    Facts {
        entries: keys(entries),
        references: keys(references),
    }
}

#[test]
fn reference_needs_its_entry_and_entry_its_last_reference() {
    let mut counts = Counts::default();
    let (nothing, entry, reference) = (facts(&[], &[]), facts(&[1], &[]), facts(&[], &[1]));
    let values = vec![Value::from(1u32)];
    assert_eq!(
        counts.replace(&nothing, &reference),
        Err(Dangling::New(0, values.clone()))
    );
    assert_eq!(counts, Counts::default());
    counts.replace(&nothing, &entry).unwrap();
    counts.replace(&nothing, &reference).unwrap();
    assert_eq!(
        counts.replace(&entry, &nothing),
        Err(Dangling::Old(0, values))
    );
    // A second entry with the same values can replace the first one.
    counts.replace(&nothing, &entry).unwrap();
    counts.replace(&entry, &nothing).unwrap();
    counts.replace(&reference, &nothing).unwrap();
    counts.replace(&entry, &nothing).unwrap();
    assert_eq!(counts, Counts::default());
}

#[test]
fn object_may_refer_to_itself() {
    let mut counts = Counts::default();
    let own = facts(&[1], &[1]);
    counts.replace(&facts(&[], &[]), &own).unwrap();
    counts.replace(&own, &facts(&[], &[])).unwrap();
    assert_eq!(counts, Counts::default());
}

proptest! {
    /// Objects with random facts replace each other; the counts always equal those of the present objects.
    #[test]
    fn accepted_replacements_never_dangle(
        steps in prop::collection::vec(
            (0..4usize, prop::collection::vec(0..3u32, 0..3), prop::collection::vec(0..3u32, 0..2)),
            1..40,
        ),
    ) {
        let mut objects = vec![Facts::default(); 4];
        let mut counts = Counts::default();
        for (which, entries, references) in steps {
            let after = facts(&entries, &references);
            if counts.replace(&objects[which], &after).is_ok() {
                objects[which] = after;
            }
            let mut expected = Counts::default();
            objects.iter().for_each(|object| expected.add(object));
            prop_assert_eq!(&counts, &expected);
            prop_assert_eq!(counts.dangling(), None);
        }
    }
}
