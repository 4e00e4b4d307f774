// SPDX-License-Identifier: Apache-2.0
//! Core time, on which other processes of the machine have little effect.

use std::mem::zeroed;
use std::time::Duration;

/// Returns the CPU time of this thread.
pub fn core_time() -> Duration {
    // SAFETY: timespec is plain data, for which zeros are valid, and the call writes only this struct.
    let time = unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
        time
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
