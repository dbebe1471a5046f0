//! Lines of cache: memory that is zeroed when it is first touched, prefetches, and stores of four
//! tokens at once. All that is unsafe in this crate.
#![allow(
    unsafe_code,
    reason = "zeroed memory, prefetches and stores beyond the length, see each block"
)]

use alloc::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use alloc::vec::Vec;
use core::ptr::NonNull;

/// Types for which all bytes zero is a value, and that need not be dropped.
///
/// # Safety
///
/// Both hold.
pub(crate) unsafe trait Zero: Copy {}

// SAFETY: a bucket is two arrays of bytes and two of numbers, all Copy.
unsafe impl Zero for crate::recent::Bucket {}
// SAFETY: a slot is arrays of numbers, all Copy.
unsafe impl Zero for crate::recent::LongSlot {}

/// A power of two of entries, found by their hash. Zeroed memory comes from the operating system,
/// so entries that are never used cost nothing, where `vec![EMPTY; n]` would write them all.
pub(crate) struct Lines<T> {
    start: NonNull<T>,
    /// The number of entries less one.
    mask: usize,
}

impl<T: Zero> Lines<T> {
    /// That many entries, all zero: a power of two.
    pub(crate) fn new(count: usize) -> Self {
        assert!(
            count.is_power_of_two() && size_of::<T>() > 0,
            "tables have a power of two of lines"
        );
        let layout = Layout::array::<T>(count).expect("a table that fits the address space");
        // SAFETY: the layout is not empty: `count` and the size of T are not 0, checked above.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start.cast()) else { handle_alloc_error(layout) };
        Self { start, mask: count - 1 }
    }

    pub(crate) fn count(&self) -> usize {
        self.mask + 1
    }

    #[inline(always)]
    pub(crate) fn at(&self, hash: u64) -> &T {
        // SAFETY: masked, the index is less than the number of entries of the allocation, which
        // are initialised: zero is a value of T.
        unsafe { self.start.add(hash as usize & self.mask).as_ref() }
    }

    #[inline(always)]
    pub(crate) fn at_mut(&mut self, hash: u64) -> &mut T {
        // SAFETY: as in `at`; `self` is borrowed mutably.
        unsafe { self.start.add(hash as usize & self.mask).as_mut() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.count() as u64).map(|i| self.at(i))
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(self.at(hash));
    }
}

impl<T> Drop for Lines<T> {
    fn drop(&mut self) {
        let layout = Layout::array::<T>(self.mask + 1).expect("allocated with this layout");
        // SAFETY: allocated in `new` with this layout and never freed elsewhere. T is Copy (no
        // `Lines<T>` is made otherwise), so entries need no drop.
        unsafe { dealloc(self.start.as_ptr().cast(), layout) }
    }
}

impl<T: Zero> Clone for Lines<T> {
    fn clone(&self) -> Self {
        let mut lines = Self::new(self.count());
        for i in 0..self.count() as u64 {
            *lines.at_mut(i) = *self.at(i);
        }
        lines
    }
}

// SAFETY: `Lines` owns its entries, as a `Box<[T]>` does.
unsafe impl<T: Send> Send for Lines<T> {}
// SAFETY: shared references give out shared references to entries alone.
unsafe impl<T: Sync> Sync for Lines<T> {}

#[inline(always)]
fn prefetch<T>(entry: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64, and a prefetch of any address is allowed.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(entry).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = entry;
}

/// Appends the first `n` of the four elements. The same as `extend_from_slice(&four[..n])`, by one
/// store of all four.
#[inline(always)]
pub(crate) fn push_some<T: Copy>(out: &mut Vec<T>, four: [T; 4], n: usize) {
    debug_assert!(n <= 4);
    let len = out.len();
    if out.capacity() - len < 4 {
        reserve(out);
    }
    // SAFETY: at least four elements of capacity lie behind the length, so the store is within the
    // allocation; it is unaligned and T is Copy. The new length covers written elements only: `n`
    // is cut to 4.
    unsafe {
        out.as_mut_ptr().add(len).cast::<[T; 4]>().write_unaligned(four);
        out.set_len(len + n.min(4));
    }
}

#[cold]
#[inline(never)]
fn reserve<T>(out: &mut Vec<T>) {
    out.reserve(4);
}
