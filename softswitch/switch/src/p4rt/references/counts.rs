// SPDX-License-Identifier: Apache-2.0
//! The number of entries that have, and that refer to, each value.

use std::collections::HashMap;

use softswitch_pipeline::Value;

/// The values of a slot's fields.
pub type Values = Vec<Value>;

/// Counts of all slots.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    slots: HashMap<(usize, Values), Count>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    entries: usize,
    references: usize,
}

/// The values of an object, and those that it refers to.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The values that references may name, by slot.
    pub entries: Vec<(usize, Values)>,
    /// The values that it refers to, by slot.
    pub references: Vec<(usize, Values)>,
}

/// A reference without its entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dangling {
    /// The object refers to values that do not exist.
    New(usize, Values),
    /// Other objects refer to values that the object had.
    Old(usize, Values),
}

impl Counts {
    /// Adds an object.
    pub fn add(&mut self, facts: &Facts) {
        for key in &facts.entries {
            self.slots.entry(key.clone()).or_default().entries += 1;
        }
        for key in &facts.references {
            self.slots.entry(key.clone()).or_default().references += 1;
        }
    }

    fn remove(&mut self, facts: &Facts) {
        for key in &facts.entries {
            self.change(key, |count| count.entries -= 1);
        }
        for key in &facts.references {
            self.change(key, |count| count.references -= 1);
        }
    }

    fn change(&mut self, key: &(usize, Values), change: impl FnOnce(&mut Count)) {
        if let Some(count) = self.slots.get_mut(key) {
            change(count);
            if *count == Count::default() {
                self.slots.remove(key);
            }
        }
    }

    /// Replaces an object; changes nothing if that leaves a dangling reference.
    ///
    /// # Errors
    /// The dangling reference.
    pub fn replace(&mut self, before: &Facts, after: &Facts) -> Result<(), Dangling> {
        self.remove(before);
        self.add(after);
        let new = after.references.iter().find(|key| self.dangles(key));
        let new = new.map(|(slot, values)| Dangling::New(*slot, values.clone()));
        let old = || before.entries.iter().find(|key| self.dangles(key));
        let old = || old().map(|(slot, values)| Dangling::Old(*slot, values.clone()));
        let Some(dangling) = new.or_else(old) else {
            return Ok(());
        };
        self.remove(after);
        self.add(before);
        Err(dangling)
    }

    fn dangles(&self, key: &(usize, Values)) -> bool {
        let count = self.slots.get(key);
        count.is_some_and(|count| count.entries == 0 && count.references > 0)
    }

    /// Returns a dangling reference, if there is any.
    pub fn dangling(&self) -> Option<(usize, &Values)> {
        let (slot, values) = self.slots.keys().find(|key| self.dangles(key))?;
        Some((*slot, values))
    }
}
