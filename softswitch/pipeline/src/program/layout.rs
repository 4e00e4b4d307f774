// SPDX-License-Identifier: Apache-2.0
//! The headers, stacks and unions of a program, and their positions in a packet's state.

use std::ops::Range;

use crate::phv::{Field, Place, Word, copy_bits};

/// Index of a header instance.
pub(crate) type HeaderId = u32;

/// A header or metadata instance.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) name: String,
    /// Type name; only headers of one type are comparable.
    pub(crate) type_name: String,
    /// Metadata is always valid and never emitted.
    pub(crate) metadata: bool,
    /// Offset of the first byte.
    pub(crate) base: u32,
    /// Bytes on the wire, without the variable-length field.
    pub(crate) fixed_bytes: u32,
    /// Offset of the validity byte.
    pub(crate) valid: u32,
    /// The fields in order, with their names.
    pub(crate) fields: Vec<Field>,
    pub(crate) names: Vec<String>,
    /// Index of the variable-length field.
    pub(crate) varbit: Option<usize>,
    /// Maximum bytes on the wire, with a full variable-length field.
    pub(crate) max_bytes: u32,
    /// Bytes from `base` that contain the fields; 0 for metadata, whose fields are in slots.
    pub(crate) stored_bytes: u32,
    /// The union it is a member of.
    pub(crate) union: Option<u32>,
}

impl Header {
    pub(crate) fn field(&self, name: &str) -> Option<Field> {
        if name == "$valid$" {
            let place = Place::Word(Word::Packed {
                off: self.valid,
                shift: 56,
                mask: 1,
            });
            return Some(Field {
                place,
                width: 1,
                signed: false,
            });
        }
        self.names
            .iter()
            .position(|n| n == name)
            .map(|i| self.fields[i])
    }

    #[inline]
    pub(crate) fn is_valid(&self, mem: &[u8]) -> bool {
        mem[self.valid as usize] != 0
    }

    /// Returns the current number of bytes on the wire.
    pub(crate) fn wire_bytes(&self, mem: &[u8]) -> usize {
        let varbit = self.varbit.map_or(0, |i| self.fields[i].varbit_len(mem));
        self.fixed_bytes as usize + varbit
    }

    /// Sets every field to zero and empties the variable-length field.
    pub(crate) fn clear(&self, mem: &mut [u8]) {
        if let Some(i) = self.varbit {
            self.fields[i].set_varbit_len(mem, 0);
        }
        mem[self.base as usize..(self.base + self.stored_bytes) as usize].fill(0);
    }

    /// Reads the header from `wire`, which must be long enough; the variable-length field has `varbit` bytes.
    #[inline]
    pub(crate) fn extract(&self, mem: &mut [u8], wire: &[u8], varbit: usize) {
        if self.varbit.is_none() {
            let base = self.base as usize;
            mem[base..base + wire.len()].copy_from_slice(wire);
        } else {
            self.extract_fields(mem, wire, varbit);
        }
    }

    fn extract_fields(&self, mem: &mut [u8], wire: &[u8], varbit: usize) {
        let mut at = 0;
        for f in &self.fields {
            let bits = match f.place {
                Place::Varbit { off, .. } => {
                    f.set_varbit_len(mem, varbit);
                    copy_bits(wire, at, mem, off as usize * 8, varbit * 8);
                    varbit * 8
                }
                _ => {
                    copy_bits(wire, at, mem, f.first_bit(), f.width as usize);
                    f.width as usize
                }
            };
            at += bits;
        }
    }

    /// Appends the wire format.
    #[inline]
    pub(crate) fn emit(&self, mem: &[u8], out: &mut Vec<u8>) {
        if self.varbit.is_none() && !self.metadata {
            let base = self.base as usize;
            out.extend_from_slice(&mem[base..base + self.fixed_bytes as usize]);
        } else {
            self.emit_fields(mem, out);
        }
    }

    fn emit_fields(&self, mem: &[u8], out: &mut Vec<u8>) {
        let start = out.len() * 8;
        out.resize(out.len() + self.wire_bytes(mem), 0);
        let mut at = start;
        for f in &self.fields {
            match f.place {
                Place::Varbit { off, .. } => {
                    let bits = f.varbit_len(mem) * 8;
                    copy_bits(mem, off as usize * 8, out, at, bits);
                    at += bits;
                }
                Place::Word(Word::Slot(..)) => {
                    let v = f.get64(mem).to_be_bytes();
                    copy_bits(&v, 64 - f.width as usize, out, at, f.width as usize);
                    at += f.width as usize;
                }
                _ => {
                    copy_bits(mem, f.first_bit(), out, at, f.width as usize);
                    at += f.width as usize;
                }
            }
        }
    }
}

/// A header stack.
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    pub(crate) elements: Vec<HeaderId>,
    /// Offset of the byte that holds the index of the next free element.
    pub(crate) next: u32,
}

/// A header union: at most one member is valid.
#[derive(Debug, Clone)]
pub(crate) struct Union {
    pub(crate) members: Vec<HeaderId>,
}

/// A stack of header unions.
#[derive(Debug, Clone)]
pub(crate) struct UnionStack {
    pub(crate) elements: Vec<u32>,
    /// Offset of the byte that holds the index of the next free element.
    pub(crate) next: u32,
}

/// The undefined bytes of a packet's state in debug builds, so that tests notice their use.
const UNDEFINED: u8 = 0xa5;

/// The layout of a packet's state: headers, stacks, unions and metadata.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) headers: Vec<Header>,
    pub(crate) stacks: Vec<Stack>,
    pub(crate) unions: Vec<Union>,
    pub(crate) union_stacks: Vec<UnionStack>,
    /// Number of bytes of the state.
    pub(crate) bytes: usize,
    /// The validity bytes of all headers, and behind them the fill counts of stacks.
    pub(crate) flags: Range<usize>,
    /// The validity of the headers of an unparsed packet: only metadata is valid.
    pub(crate) initially_valid: Vec<u8>,
    /// Number of bytes of metadata, at the beginning of the state. Temporary fields follow, up to the flags.
    pub(crate) metadata_bytes: usize,
    /// True if a header that becomes valid keeps what was written to its fields before, as on Tofino, where validity is a
    /// bit beside the fields.
    pub(crate) keeps_fields: bool,
}

impl Layout {
    /// Returns true if a part of the state belongs to temporary fields.
    pub(crate) fn is_temporary(&self, part: &Range<usize>) -> bool {
        self.metadata_bytes <= part.start && part.end <= self.flags.start
    }

    /// Returns true if a word is a temporary field.
    pub(crate) fn has_temporary(&self, word: &Word) -> bool {
        matches!(word, Word::Slot(off, bytes)
            if self.is_temporary(&(*off as usize..*off as usize + usize::from(*bytes))))
    }

    /// Resets a packet's state to that of an unparsed packet: all zero except for temporary fields, only metadata is valid.
    pub(crate) fn reset(&self, mem: &mut Vec<u8>) {
        self.reset_parts(mem, &[0..self.metadata_bytes, self.flags.start..self.bytes]);
    }

    /// Resets some parts of a packet's state, among them all flags. The contents of the others are undefined.
    #[inline]
    pub(crate) fn reset_parts(&self, mem: &mut Vec<u8>, parts: &[Range<usize>]) {
        mem.resize(self.bytes, 0);
        if cfg!(debug_assertions) {
            mem.fill(UNDEFINED);
        }
        for part in parts {
            mem[part.clone()].fill(0);
        }
        self.reset_validity(mem);
    }

    fn reset_validity(&self, mem: &mut [u8]) {
        let valid = &self.initially_valid;
        mem[self.flags.start..][..valid.len()].copy_from_slice(valid);
    }

    /// Sets the validity of a header; a union keeps at most one valid member.
    #[inline]
    pub(crate) fn set_valid(&self, mem: &mut [u8], id: HeaderId, valid: bool) {
        let h = &self.headers[id as usize];
        if valid && let Some(u) = h.union {
            for &m in &self.unions[u as usize].members {
                mem[self.headers[m as usize].valid as usize] = 0;
            }
        }
        mem[h.valid as usize] = u8::from(valid);
    }

    /// Copies the fields, the length and the validity of a header of the same type.
    pub(crate) fn assign_header(&self, mem: &mut [u8], dst: HeaderId, src: HeaderId) {
        let (d, s) = (&self.headers[dst as usize], &self.headers[src as usize]);
        if !s.is_valid(mem) {
            self.set_valid(mem, dst, false);
            return;
        }
        self.copy_contents(mem, d, s);
        self.set_valid(mem, dst, true);
    }

    fn copy_contents(&self, mem: &mut [u8], d: &Header, s: &Header) {
        if s.stored_bytes != 0 && d.stored_bytes != 0 {
            let len = s.stored_bytes.min(d.stored_bytes) as usize;
            let from = s.base as usize;
            mem.copy_within(from..from + len, d.base as usize);
        } else {
            for (df, sf) in d.fields.iter().zip(&s.fields) {
                let v = sf.get_big(mem);
                df.set_big(mem, &v);
            }
        }
        if let (Some(i), Some(j)) = (d.varbit, s.varbit) {
            let len = s.fields[j].varbit_len(mem);
            d.fields[i].set_varbit_len(mem, len);
        }
    }

    pub(crate) fn assign_union(&self, mem: &mut [u8], dst: u32, src: u32) {
        let count = self.unions[dst as usize].members.len();
        // Invalid members first: a member that becomes valid invalidates its siblings.
        for pass in [false, true] {
            for i in 0..count {
                let s = self.unions[src as usize].members[i];
                if self.headers[s as usize].is_valid(mem) == pass {
                    self.assign_header(mem, self.unions[dst as usize].members[i], s);
                }
            }
        }
    }

    /// Copies an element of a stack, contents and validity, to another position.
    fn move_header(&self, mem: &mut [u8], dst: HeaderId, src: HeaderId) {
        let (d, s) = (&self.headers[dst as usize], &self.headers[src as usize]);
        self.copy_contents(mem, d, s);
        mem[d.valid as usize] = mem[s.valid as usize];
    }

    /// Shifts a stack by `by` elements, towards the end if positive. The new elements are invalid.
    pub(crate) fn shift_stack(&self, mem: &mut [u8], stack: u32, by: i64) {
        let Stack { elements, next } = &self.stacks[stack as usize];
        self.shift(mem, elements.len(), *next, by, |i| {
            std::slice::from_ref(&elements[i])
        });
    }

    /// Shifts a stack of unions in the same way.
    pub(crate) fn shift_union_stack(&self, mem: &mut [u8], stack: u32, by: i64) {
        let UnionStack { elements, next } = &self.union_stacks[stack as usize];
        let members = |i: usize| self.unions[elements[i] as usize].members.as_slice();
        self.shift(mem, elements.len(), *next, by, members);
    }

    fn shift<'a>(
        &self,
        mem: &mut [u8],
        depth: usize,
        next: u32,
        by: i64,
        headers: impl Fn(usize) -> &'a [HeaderId],
    ) {
        let depth = depth as i64;
        let by = by.clamp(-depth, depth);
        let filled = i64::from(mem[next as usize]);
        mem[next as usize] = (filled + by).clamp(0, depth) as u8;
        for step in 0..depth {
            let to = if by > 0 { depth - 1 - step } else { step };
            let from = to - by;
            for (i, &dst) in headers(to as usize).iter().enumerate() {
                if (0..depth).contains(&from) {
                    self.move_header(mem, dst, headers(from as usize)[i]);
                } else {
                    mem[self.headers[dst as usize].valid as usize] = 0;
                }
            }
        }
    }

    /// Returns the fields of one bit.
    pub(crate) fn bits(&self) -> impl Iterator<Item = Word> {
        let fields = self.headers.iter().flat_map(|header| &header.fields);
        let bits = fields.filter(|field| field.width == 1);
        bits.filter_map(|field| match field.place {
            Place::Word(word) => Some(word),
            Place::Bits(_) | Place::Varbit { .. } => None,
        })
    }

    /// Sets all temporary fields to zero.
    pub(crate) fn clear_temporaries(&self, mem: &mut [u8]) {
        mem[self.metadata_bytes..self.flags.start].fill(0);
    }

    /// Sets all metadata to zero, except temporary fields.
    pub(crate) fn clear_metadata(&self, mem: &mut [u8]) {
        mem[..self.metadata_bytes].fill(0);
    }
}

/// Writes the fields that the switch sets before a control, of which a program need not declare all.
pub(crate) fn set_inputs(fields: &[Option<Field>], mem: &mut [u8], values: &[u64]) {
    for (&field, &value) in fields.iter().zip(values) {
        set_if_present(field, mem, value);
    }
}

/// Writes a field that a program need not declare.
pub(crate) fn set_if_present(field: Option<Field>, mem: &mut [u8], v: u64) {
    if let Some(f) = field {
        f.set64(mem, v);
    }
}
