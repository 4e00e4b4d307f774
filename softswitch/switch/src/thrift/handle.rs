// SPDX-License-Identifier: Apache-2.0
//! Handles of members and groups, and indices of cells.

/// Returns the handle of a member or a group. P4Runtime's ids begin with 1, and BMv2's handles with 0.
pub fn of_id(id: u32) -> i32 {
    id.wrapping_sub(1).cast_signed()
}

/// Returns the id of a member or a group with a handle.
pub fn id(handle: i32) -> u32 {
    handle.cast_unsigned().wrapping_add(1)
}

/// Returns the lowest free id, as BMv2 assigns handles. `used` are the used ids in ascending order.
pub fn free_id(used: impl Iterator<Item = u32>) -> u32 {
    (1..).zip(used).take_while(|(id, used)| id == used).count() as u32 + 1
}

/// Returns the index of a cell; a negative one is out of range of every array.
pub fn index(index: i32) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_begin_with_zero() {
        assert_eq!((of_id(1), id(0)), (0, 1));
        assert_eq!(id(of_id(u32::MAX)), u32::MAX);
        assert_eq!(free_id([].into_iter()), 1);
        assert_eq!(free_id([1, 2, 4].into_iter()), 3);
        assert_eq!(free_id([2].into_iter()), 1);
    }
}
