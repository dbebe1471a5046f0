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

/// An even number of entries, found by their hash. Zeroed memory comes from the operating system,
/// so entries that are never used cost nothing, where `vec![EMPTY; n]` would write them all.
pub(crate) struct Lines<T> {
    start: NonNull<T>,
    count: usize,
}

impl<T: Zero> Lines<T> {
    /// That many entries, all zero; one more if the number is odd, and two at least.
    pub(crate) fn new(count: usize) -> Self {
        let count = count.max(1).next_multiple_of(2);
        assert!(size_of::<T>() > 0, "entries have bytes");
        let layout = Layout::array::<T>(count).expect("a table that fits the address space");
        // SAFETY: the layout is not empty: neither `count` nor the size of T is 0.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start.cast()) else { handle_alloc_error(layout) };
        Self { start, count }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The place of a hash: hashes are spread evenly over any number of entries.
    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.count as u128) >> 64) as usize
    }

    /// The entry of a hash.
    #[inline(always)]
    pub(crate) fn at(&self, hash: u64) -> &T {
        // SAFETY: a hash is less than 2^64, so its place is less than `count`; so many entries are
        // allocated and initialised, since zero is a value of T.
        unsafe { self.start.add(self.place(hash)).as_ref() }
    }

    /// The other entry of the pair that the entry of a hash belongs to: the next line of cache, or
    /// the one before, which hardware often fetches along.
    #[inline(always)]
    pub(crate) fn beside(&self, hash: u64) -> &T {
        // SAFETY: as in `at`; `count` is even, so the other of a pair is less than it, too.
        unsafe { self.start.add(self.place(hash) ^ 1).as_ref() }
    }

    /// The entry of a hash and the one beside it.
    #[inline(always)]
    pub(crate) fn pair_mut(&mut self, hash: u64) -> (&mut T, &mut T) {
        let place = self.place(hash);
        // SAFETY: both places are less than `count`, as in `beside`, and they differ, so the
        // references do not overlap; `self` is borrowed mutably.
        unsafe { (self.start.add(place).as_mut(), self.start.add(place ^ 1).as_mut()) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        // SAFETY: `count` entries are allocated and initialised, and borrowed as long as `self`.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.count) }.iter()
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(self.at(hash));
    }
}

impl<T> Drop for Lines<T> {
    fn drop(&mut self) {
        let layout = Layout::array::<T>(self.count).expect("allocated with this layout");
        // SAFETY: allocated in `new` with this layout and never freed elsewhere. T is Copy (no
        // `Lines<T>` is made otherwise), so entries need no drop.
        unsafe { dealloc(self.start.as_ptr().cast(), layout) }
    }
}

impl<T: Zero> Clone for Lines<T> {
    fn clone(&self) -> Self {
        let lines = Self::new(self.count);
        // SAFETY: both have `count` entries, in allocations of their own, and T is Copy.
        unsafe { lines.start.copy_from_nonoverlapping(self.start, self.count) };
        lines
    }
}

// SAFETY: `Lines` owns its entries, as a `Box<[T]>` does.
unsafe impl<T: Send> Send for Lines<T> {}
// SAFETY: shared references give out shared references to entries alone.
unsafe impl<T: Sync> Sync for Lines<T> {}

/// Asks for the line of cache of `entry`, for use a little later. Changes nothing but the time.
#[inline(always)]
pub fn prefetch<T>(entry: &T) {
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
