// SPDX-License-Identifier: Apache-2.0
//! Core time: other processes on the machine hardly matter to it.

use std::mem::zeroed;
use std::time::Duration;

/// The time for which a core has worked for this thread.
pub fn core_time() -> Duration {
    // SAFETY: all zeros are a valid time, and the call writes no more than that.
    let time = unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
        time
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
