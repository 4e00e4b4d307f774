// SPDX-License-Identifier: Apache-2.0
//! The functions that this library replaces, as the C library defines them.

use std::sync::OnceLock;

use libc::c_void;

/// Return the next definition of a function in the search order.
macro_rules! next {
    ($name:literal: fn($($parameter:ty),*) -> $result:ty) => {{
        static NEXT: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let found = crate::next::find(concat!($name, "\0"), &NEXT);
        // SAFETY: a function of that name has that type.
        #[allow(unused_unsafe)] // in the functions whose body is unsafe
        let function = unsafe {
            std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn($($parameter),*) -> $result>(found)
        };
        function
    }};
}

/// Return the address of a function, whose name ends with NUL.
pub fn find(name: &'static str, known: &OnceLock<usize>) -> *mut c_void {
    // SAFETY: the string ends with NUL.
    let find = || unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast()) as usize };
    let found = *known.get_or_init(find) as *mut c_void;
    assert!(!found.is_null(), "the C library has no {name}");
    found
}

pub(crate) use next;
