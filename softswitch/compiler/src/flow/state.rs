//! What is known of variables at one point of the program.

use super::layout::Place;

/// Whether a header is valid.
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
    /// The program has asked whether it is valid, so that it is taken to know.
    asked: bool,
}

/// Slots that no statement has touched hold a value, and headers that may be valid.
#[derive(Clone, Default)]
pub struct State {
    /// Nothing comes here.
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

    /// What it takes to copy the state.
    pub fn size(&self) -> usize {
        self.unset.len() + self.headers.len()
    }

    /// Says of all values in the place whether they may be without a value.
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

    /// Whether any value in the place may be without a value.
    pub fn has_unset(&self, place: &Place) -> bool {
        let end = self.unset.len().min(place.value + place.layout.values);
        self.unset
            .get(place.value..end)
            .is_some_and(|slots| slots.contains(&true))
    }

    /// What the program may take for granted of the header of this slot.
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

    /// The same of all headers in the place.
    pub fn set_all(&mut self, place: &Place, validity: Validity) {
        (place.header..place.header + place.layout.headers)
            .for_each(|slot| self.set_validity(slot, validity));
    }

    /// The program looks whether the headers in the place are valid.
    pub fn ask(&mut self, place: &Place) {
        (place.header..place.header + place.layout.headers)
            .for_each(|slot| self.header(slot).asked = true);
    }

    /// Forgets what was asked since `before`: it holds only for the statement that asked.
    pub fn ask_as(&mut self, before: &State) {
        for (slot, h) in self.headers.iter_mut().enumerate() {
            h.asked = before.headers.get(slot).is_some_and(|b| b.asked);
        }
    }

    /// Headers that were valid before stay so: which of a table's actions runs is up to its entries.
    pub fn keep_valid(&mut self, before: &State) {
        for (h, before) in self.headers.iter_mut().zip(&before.headers) {
            if before.validity == Validity::Yes {
                h.validity = Validity::Yes;
            }
        }
    }

    /// Takes in what another way brings to the same point; returns whether that changed anything.
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
