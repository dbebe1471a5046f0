//! Lines of cache: zeroed memory, prefetches, reads of 16 bytes, and
//! writers that store four elements at once.
#![allow(
    unsafe_code,
    reason = "zeroed memory, prefetches and stores beyond the length, see each block"
)]

use alloc::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use alloc::vec::Vec;
use core::marker::PhantomData;
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

/// An even number of entries, found by their hash.
///
/// The allocator zeroes them. That of the standard library on Unix writes all of them where more than 16
/// bytes are aligned to, as lines of cache are: entries that are never used take memory, too.
pub(crate) struct Lines<T> {
    start: NonNull<T>,
    count: usize,
}

/// Where the entries of [`Lines`] are, at hand in a loop that writes elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct Entries<'l, T> {
    lines: PhantomData<&'l Lines<T>>,
    start: NonNull<T>,
    count: usize,
}

impl<'l, T> Entries<'l, T> {
    /// The place of a hash: hashes are spread evenly over any number of entries.
    #[inline(always)]
    pub(crate) fn place(self, hash: u64) -> usize {
        ((u128::from(hash) * self.count as u128) >> 64) as usize
    }

    /// The entry at a place.
    ///
    /// # Safety
    ///
    /// The place is less than the number of entries.
    #[inline(always)]
    pub(crate) unsafe fn entry(self, place: usize) -> &'l T {
        debug_assert!(place < self.count);
        // SAFETY: so many entries are allocated and initialised, since zero is a value of T, and
        // borrowed as long as 'l.
        unsafe { self.start.add(place).as_ref() }
    }
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

    #[inline(always)]
    pub(crate) fn entries(&self) -> Entries<'_, T> {
        Entries { lines: PhantomData, start: self.start, count: self.count }
    }

    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        self.entries().place(hash)
    }

    /// The entry of a hash.
    #[inline(always)]
    pub(crate) fn at(&self, hash: u64) -> &T {
        // SAFETY: a hash is less than 2^64, so its place is less than `count`.
        unsafe { self.entries().entry(self.place(hash)) }
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

/// A text, of which 16 bytes are read at a time.
#[derive(Clone, Copy)]
pub(crate) struct Windows<'t> {
    text: &'t [u8],
    /// At so many places begin 16 bytes of it.
    count: usize,
}

impl<'t> Windows<'t> {
    #[inline(always)]
    pub(crate) fn new(text: &'t [u8]) -> Self {
        Self { text, count: text.len().saturating_sub(15) }
    }

    pub(crate) fn text(self) -> &'t [u8] {
        self.text
    }

    /// The 16 bytes that begin at `start`, if there are so many. With one comparison, where a slice
    /// takes two.
    #[inline(always)]
    pub(crate) fn at(self, start: usize) -> Option<&'t [u8; 16]> {
        // SAFETY: a place that is less than `count` has 15 bytes of the text behind it. An array of
        // bytes need not be aligned.
        (start < self.count).then(|| unsafe { &*self.text.as_ptr().add(start).cast() })
    }
}

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

/// Appends to a vector, four elements by one store.
///
/// What was written belongs to the vector when the writer is dropped.
pub struct Writer<'v, T: Copy> {
    out: &'v mut Vec<T>,
    /// Where the next element goes.
    at: *mut T,
    /// The last place with room for four elements.
    last: *mut T,
}

impl<'v, T: Copy> Writer<'v, T> {
    /// A writer that need not ask for memory for so many elements, and four.
    #[inline(always)]
    pub(crate) fn new(out: &'v mut Vec<T>, room: usize) -> Self {
        const { assert!(size_of::<T>() > 0, "elements have bytes") };
        if out.capacity() - out.len() < room + 4 {
            reserve(out, room);
        }
        let start = out.as_mut_ptr();
        // SAFETY: the length is at most the capacity, and four elements of capacity lie behind it:
        // both places are in the allocation.
        let (at, last) = unsafe { (start.add(out.len()), start.add(out.capacity() - 4)) };
        Self { out, at, last }
    }

    /// Appends the first `n` of the four elements. The same as `extend_from_slice(&four[..n])`, by
    /// one store of all four.
    #[inline(always)]
    pub(crate) fn push_some(&mut self, four: [T; 4], n: usize) {
        debug_assert!(n <= 4);
        self.make_room();
        // SAFETY: `at` is not behind `last`, so four elements of the allocation begin there; the
        // store need not be aligned and T is Copy. `n` is cut to 4, so `at` stays in the
        // allocation, and what is in front of it was written.
        unsafe {
            self.at.cast::<[T; 4]>().write_unaligned(four);
            self.at = self.at.add(n.min(4));
        }
    }

    /// Appends one element.
    #[inline(always)]
    pub(crate) fn push(&mut self, element: T) {
        self.make_room();
        // SAFETY: as in `push_some`, of one element.
        unsafe {
            self.at.write(element);
            self.at = self.at.add(1);
        }
    }

    /// The length of the vector by now.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        // SAFETY: both are in the allocation of the vector, and `at` is not in front of its start.
        unsafe { self.at.offset_from_unsigned(self.out.as_ptr()) }
    }

    #[inline(always)]
    fn make_room(&mut self) {
        if self.at > self.last {
            let len = self.len();
            (self.at, self.last) = grow(self.out, len);
        }
    }
}

impl<T: Copy> Drop for Writer<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let len = self.len();
        // SAFETY: all elements up to `at`, which is in the allocation, were written.
        unsafe { self.out.set_len(len) }
    }
}

#[cold]
#[inline(never)]
fn reserve<T>(out: &mut Vec<T>, room: usize) {
    out.reserve(room + 4);
}

/// Room for four elements behind the first `len`, which were written: where that is, and the last
/// place with so much room.
#[cold]
#[inline(never)]
fn grow<T>(out: &mut Vec<T>, len: usize) -> (*mut T, *mut T) {
    // SAFETY: so many elements were written and lie in the allocation.
    unsafe { out.set_len(len) };
    out.reserve(4);
    let start = out.as_mut_ptr();
    // SAFETY: as in `Writer::new`.
    unsafe { (start.add(len), start.add(out.capacity() - 4)) }
}
