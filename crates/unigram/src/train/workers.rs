//! Work on many threads.

use alloc::vec::Vec;
use core::ops::Range;

/// How many threads there are.
pub(super) struct Workers {
    threads: usize,
}

impl Workers {
    /// `threads` of them; 0 for as many as the machine has.
    pub(super) fn new(threads: usize) -> Self {
        #[cfg(feature = "std")]
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, Into::into),
            threads => threads.min(1024),
        };
        #[cfg(not(feature = "std"))]
        let threads = threads.min(1).max(1);
        Self { threads }
    }

    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `work` for all of `range`, in parts of `part`, with a state for each thread. Which
    /// thread gets which part is not fixed: results must not depend on it.
    pub(super) fn run<S: Send>(
        &self,
        states: &mut [S],
        range: Range<usize>,
        part: usize,
        work: impl Fn(&mut S, Range<usize>) + Sync,
    ) {
        let part = part.max(1);
        #[cfg(feature = "std")]
        if self.threads > 1 && range.len() > part {
            use std::sync::atomic::{AtomicUsize, Ordering};
            let next = AtomicUsize::new(range.start);
            std::thread::scope(|scope| {
                for state in states {
                    scope.spawn(|| {
                        loop {
                            let start = next.fetch_add(part, Ordering::Relaxed);
                            if start >= range.end {
                                return;
                            }
                            work(state, start..(start + part).min(range.end));
                        }
                    });
                }
            });
            return;
        }
        let Some(state) = states.first_mut() else { return };
        let starts: Vec<usize> = range.clone().step_by(part).collect();
        for start in starts {
            work(state, start..(start + part).min(range.end));
        }
    }

    /// Calls `work` for every item.
    pub(super) fn each<T: Send>(&self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        #[cfg(feature = "std")]
        if self.threads > 1 && items.len() > 1 {
            let items = std::sync::Mutex::new(items.iter_mut());
            let next = || items.lock().ok().and_then(|mut items| items.next());
            std::thread::scope(|scope| {
                for _ in 0..self.threads {
                    scope.spawn(|| {
                        while let Some(item) = next() {
                            work(item);
                        }
                    });
                }
            });
            return;
        }
        items.iter_mut().for_each(work);
    }
}
