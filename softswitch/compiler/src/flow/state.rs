// SPDX-License-Identifier: Apache-2.0
//! The known state of variables at one point of the program.

use super::layout::Place;

/// The validity of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validity {
    Yes,
    No,
    #[default]
    Maybe,
}

#[derive(Clone, Copy, Default)]
struct Header {
    validity: Validity,
    /// The program has tested its validity, so it counts as valid.
    asked: bool,
}

/// The state of all slots. Untouched slots are initialized, and their headers may be valid.
#[derive(Clone, Default)]
pub struct State {
    /// True if this point is unreachable.
    pub dead: bool,
    unset: Vec<bool>,
    headers: Vec<Header>,
}

impl State {
    pub fn dead() -> Self {
        State {
            dead: true,
            ..State::default()
        }
    }

    /// Returns the cost of copying the state.
    pub fn size(&self) -> usize {
        self.unset.len() + self.headers.len()
    }

    /// Marks all values in the place as possibly uninitialized, or not.
    pub fn mark(&mut self, place: &Place, unset: bool) {
        let end = place.value + place.layout.values;
        if self.unset.len() < end {
            self.unset.resize(end, false);
        }
        self.unset[place.value..end].fill(unset);
    }

    pub fn is_unset(&self, slot: usize) -> bool {
        self.unset.get(slot).copied().unwrap_or(false)
    }

    /// Returns true if any value in the place may be uninitialized.
    pub fn has_unset(&self, place: &Place) -> bool {
        let end = self.unset.len().min(place.value + place.layout.values);
        self.unset
            .get(place.value..end)
            .is_some_and(|slots| slots.contains(&true))
    }

    /// Returns the known validity of the header in this slot.
    pub fn validity(&self, slot: usize) -> Validity {
        match self.headers.get(slot) {
            Some(h) if h.asked => Validity::Yes,
            Some(h) => h.validity,
            None => Validity::Maybe,
        }
    }

    fn header(&mut self, slot: usize) -> &mut Header {
        if self.headers.len() <= slot {
            self.headers.resize(slot + 1, Header::default());
        }
        &mut self.headers[slot]
    }

    pub fn set_validity(&mut self, slot: usize, validity: Validity) {
        let asked = false;
        *self.header(slot) = Header { validity, asked };
    }

    /// Returns the known validity of all headers in the place.
    pub fn set_all(&mut self, place: &Place, validity: Validity) {
        (place.header..place.header + place.layout.headers)
            .for_each(|slot| self.set_validity(slot, validity));
    }

    /// Records a test of the validity of the headers in the place.
    pub fn ask(&mut self, place: &Place) {
        (place.header..place.header + place.layout.headers)
            .for_each(|slot| self.header(slot).asked = true);
    }

    /// Discards tests since `before`, because they hold only for the testing statement.
    pub fn ask_as(&mut self, before: &State) {
        for (slot, h) in self.headers.iter_mut().enumerate() {
            h.asked = before.headers.get(slot).is_some_and(|b| b.asked);
        }
    }

    /// Keeps headers valid that were valid before, because the entries determine which of a table's actions runs.
    pub fn keep_valid(&mut self, before: &State) {
        for (h, before) in self.headers.iter_mut().zip(&before.headers) {
            if before.validity == Validity::Yes {
                h.validity = Validity::Yes;
            }
        }
    }

    /// Merges the state of another path to the same point; returns true if that changed anything.
    pub fn join(&mut self, other: &State) -> bool {
        if other.dead {
            return false;
        }
        if self.dead {
            *self = other.clone();
            return true;
        }
        let mut changed = false;
        if self.unset.len() < other.unset.len() {
            self.unset.resize(other.unset.len(), false);
        }
        for (own, other) in self.unset.iter_mut().zip(&other.unset) {
            changed |= *other && !*own;
            *own |= *other;
        }
        for (slot, h) in self.headers.iter_mut().enumerate() {
            let other = other.headers.get(slot).copied().unwrap_or_default();
            let differs = h.validity != other.validity && h.validity != Validity::Maybe;
            changed |= differs || h.asked;
            h.asked = false;
            if differs {
                h.validity = Validity::Maybe;
            }
        }
        changed
    }
}
