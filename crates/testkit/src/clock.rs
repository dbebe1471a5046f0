//! Processor time: what other programs on the machine take is not in it.
//!
//! The numbers in `/proc/*/schedstat` will not do: some kernels bring them up to date only every few
//! milliseconds.

use rustix::time::{ClockId, clock_gettime};

/// Seconds that this thread has had a processor.
#[must_use]
pub fn thread_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// Seconds that all threads of this process have had a processor.
#[must_use]
pub fn process_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_and_sleep_takes_none() {
        let (process, thread) = (process_seconds(), thread_seconds());
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(thread_seconds() - thread < 0.02, "asleep");
        while thread_seconds() - thread < 0.001 {}
        assert!(process_seconds() - process >= 0.001, "the process has its threads' time");
    }
}
