// SPDX-License-Identifier: Apache-2.0
//! The bytes of a packet.

use std::ops::{Deref, DerefMut};

/// Bytes of room that a frame gets in front if headers may grow.
pub(crate) const ROOM: usize = 128;

/// The bytes of a packet, with memory in front of them, in which headers can grow without moving the payload.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    buffer: Vec<u8>,
    /// Number of bytes of room.
    room: usize,
}

impl Deref for Frame {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.buffer[self.room..]
    }
}

impl DerefMut for Frame {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.room..]
    }
}

impl From<Vec<u8>> for Frame {
    fn from(buffer: Vec<u8>) -> Self {
        Self { buffer, room: 0 }
    }
}

impl From<Frame> for Vec<u8> {
    /// Moves the bytes to the beginning of their memory.
    fn from(frame: Frame) -> Self {
        let mut buffer = frame.buffer;
        buffer.drain(..frame.room);
        buffer
    }
}

impl Frame {
    /// Replaces the content, and leaves `room` bytes of room, with arbitrary bytes.
    pub(crate) fn set(&mut self, room: usize, bytes: &[u8]) {
        self.buffer.truncate(room);
        self.buffer.resize(room, 0);
        self.buffer.extend_from_slice(bytes);
        self.room = room;
    }

    /// Replaces the content by that of another frame, with the same room.
    pub(crate) fn copy_from(&mut self, other: &Frame) {
        self.buffer.clone_from(&other.buffer);
        self.room = other.room;
    }

    /// Returns a buffer for new content without room; it contains arbitrary bytes.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.room = 0;
        &mut self.buffer
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.buffer.truncate(self.room.saturating_add(length));
    }

    /// Replaces the first `old` bytes by others.
    pub(crate) fn replace_front(&mut self, old: usize, new: &[u8]) {
        self.resize_front(old, new.len()).copy_from_slice(new);
    }

    /// Puts zeros in front, and returns them.
    pub(crate) fn extend_front(&mut self, bytes: usize) -> &mut [u8] {
        let front = self.resize_front(0, bytes);
        front.fill(0);
        front
    }

    /// Replaces the first `old` bytes by `new` arbitrary ones, and returns these.
    fn resize_front(&mut self, old: usize, new: usize) -> &mut [u8] {
        let free = self.room + old;
        let Some(room) = free.checked_sub(new) else {
            self.grow(old, ROOM + new - free);
            return self.resize_front(old, new);
        };
        self.room = room;
        &mut self.buffer[room..free]
    }

    /// Adds room for `bytes` more bytes, and moves all behind the first `old` bytes.
    #[cold]
    fn grow(&mut self, old: usize, bytes: usize) {
        let length = self.buffer.len();
        let first = self.room + old;
        self.buffer.resize(length + bytes, 0);
        self.buffer.copy_within(first..length, first + bytes);
        self.room += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_grows_with_and_without_room() {
        for room in [0, 1, 2, 3, ROOM] {
            let mut frame = Frame::default();
            frame.set(room, &[1, 2, 3]);
            frame.replace_front(1, &[7, 8, 9]);
            assert_eq!(*frame, [7, 8, 9, 2, 3], "room {room}");
            frame.replace_front(0, &[5; 2 * ROOM]);
            assert_eq!(frame[..2 * ROOM], [5; 2 * ROOM]);
            assert_eq!(frame[2 * ROOM..], [7, 8, 9, 2, 3]);
        }
    }

    #[test]
    fn extended_front_is_zero() {
        let mut frame = Frame::default();
        frame.set(2, &[1, 2, 3]);
        frame.replace_front(1, &[]);
        assert_eq!(frame.extend_front(4), [0; 4]);
        assert_eq!(*frame, [0, 0, 0, 0, 2, 3]);
    }

    #[test]
    fn removed_front_becomes_room() {
        let mut frame = Frame::default();
        frame.set(0, &[1, 2, 3]);
        frame.replace_front(2, &[]);
        assert_eq!(*frame, [3]);
        assert_eq!(frame.room, 2);
        frame.replace_front(0, &[4, 5]);
        assert_eq!(*frame, [4, 5, 3]);
        assert_eq!(frame.room, 0);
    }

    #[test]
    fn frame_becomes_vector_with_and_without_room() {
        for room in [0, 4] {
            let mut frame = Frame::default();
            frame.set(room, &[1, 2, 3]);
            frame.truncate(2);
            assert_eq!(Vec::from(frame), [1, 2]);
        }
    }
}
