// SPDX-License-Identifier: Apache-2.0
//! Hardware counters of this thread, by perf_event_open(2).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

use anyhow::{Context, Result};
use serde::Serialize;

/// `perf_event_attr` of the first version, without the fields that later kernels added.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    breakpoint_address: u64,
}

/// `PERF_TYPE_HARDWARE`.
const HARDWARE: u32 = 0;
/// `PERF_COUNT_HW_CPU_CYCLES`, `_CACHE_MISSES` and `_BRANCH_MISSES`.
const EVENTS: [u64; 3] = [0, 3, 5];
/// `exclude_kernel` and `exclude_hv`: what the interrupts of other work cost does not count.
const USER_ONLY: u64 = 1 << 5 | 1 << 6;

/// Events of this thread in user space: totals, or per packet.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Events {
    pub cycles: f64,
    /// Misses in the last-level cache.
    pub cache_misses: f64,
    pub branch_misses: f64,
}

impl Events {
    fn new([cycles, cache_misses, branch_misses]: [f64; 3]) -> Self {
        Self {
            cycles,
            cache_misses,
            branch_misses,
        }
    }

    fn values(&self) -> [f64; 3] {
        [self.cycles, self.cache_misses, self.branch_misses]
    }

    /// Returns the events since an earlier total, per packet.
    pub fn per_packet_since(&self, earlier: &Self, packets: u64) -> Self {
        let (now, before) = (self.values(), earlier.values());
        Self::new(std::array::from_fn(|i| {
            (now[i] - before[i]) / packets as f64
        }))
    }

    /// Returns the median of each kind of event.
    pub fn medians(all: &[Self]) -> Self {
        Self::new(std::array::from_fn(|i| {
            let mut values: Vec<f64> = all.iter().map(|events| events.values()[i]).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        }))
    }
}

/// Open counters.
pub struct Counters(Vec<File>);

impl Counters {
    /// Opens the counters of the calling thread, which count from now on. Fails on machines without hardware counters, as
    /// most virtual ones are, and without permission.
    pub fn open() -> Result<Self> {
        let files = EVENTS.map(|event| {
            open(event).with_context(|| {
                format!(
                    "perf_event_open: no hardware counter {event}: run on a machine that has it, with \
                     kernel.perf_event_paranoid at most 2"
                )
            })
        });
        files.into_iter().collect::<Result<_>>().map(Self)
    }

    /// Returns the totals since the counters were opened.
    pub fn read(&mut self) -> Result<Events> {
        let mut totals = [0.0; EVENTS.len()];
        for (total, file) in totals.iter_mut().zip(&mut self.0) {
            let mut bytes = [0; size_of::<u64>()];
            file.read_exact(&mut bytes)
                .with_context(|| format!("cannot read hardware counter {}", file.as_raw_fd()))?;
            *total = u64::from_ne_bytes(bytes) as f64;
        }
        Ok(Events::new(totals))
    }
}

fn open(event: u64) -> io::Result<File> {
    let attributes = Attributes {
        kind: HARDWARE,
        size: size_of::<Attributes>() as u32,
        config: event,
        flags: USER_ONLY,
        ..Attributes::default()
    };
    let (this_thread, any_processor, no_group, no_flags) = (0, -1, -1, 0);
    // SAFETY: the kernel reads `size` bytes of the attributes, and does not keep the pointer.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_processor,
            no_group,
            no_flags,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(cycles: f64) -> Events {
        Events::new([cycles, 2.0 * cycles, 1.0])
    }

    #[test]
    fn events_are_divided_among_packets() {
        let per_packet = events(700.0).per_packet_since(&events(100.0), 3);
        assert_eq!(per_packet.values(), [200.0, 400.0, 0.0]);
    }

    #[test]
    fn median_ignores_outlier() {
        let all = [events(5.0), events(1000.0), events(6.0)];
        assert_eq!(Events::medians(&all).values(), [6.0, 12.0, 1.0]);
    }

    #[test]
    fn counters_grow_where_they_exist() {
        // Most virtual machines do not have them.
        if let Ok(mut counters) = Counters::open() {
            let before = counters.read().expect("the counters are open");
            let after = counters.read().expect("the counters are open");
            assert!(after.cycles > before.cycles);
        }
    }
}
