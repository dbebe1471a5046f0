use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

/// A slice that is owned, or that lies in the program for as long as it runs.
///
/// Tables that were made when the program was built are read where they lie, by the same code as
/// tables that were made when the program ran. Reading costs the same: both are an address and a length.
///
/// ```
/// use tokenizer_core::Array;
///
/// static SQUARES: [u32; 3] = [1, 4, 9];
/// let lies = Array::from(&SQUARES[..]);
/// let owned = Array::from(vec![1, 4, 9]);
/// assert!(lies == owned && owned[2] == 9);
/// ```
#[derive(Clone)]
pub struct Array<T: 'static>(Kept<T>);

#[derive(Clone)]
enum Kept<T: 'static> {
    Owned(Box<[T]>),
    Static(&'static [T]),
}

impl<T> Array<T> {
    /// The elements to write to; those that lie in the program are copied first.
    #[inline]
    pub fn to_mut(&mut self) -> &mut [T]
    where
        T: Clone,
    {
        if let Kept::Static(elements) = self.0 {
            self.0 = Kept::Owned(elements.into());
        }
        match &mut self.0 {
            Kept::Owned(elements) => elements,
            Kept::Static(_) => &mut [],
        }
    }

    /// Whether the elements lie in the program.
    #[must_use]
    pub fn is_static(&self) -> bool {
        matches!(self.0, Kept::Static(_))
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Kept::Owned(elements) => elements,
            Kept::Static(elements) => elements,
        }
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Self(Kept::Static(&[]))
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(elements: Vec<T>) -> Self {
        Self(Kept::Owned(elements.into()))
    }
}

impl<T> From<Box<[T]>> for Array<T> {
    fn from(elements: Box<[T]>) -> Self {
        Self(Kept::Owned(elements))
    }
}

impl<T> From<&'static [T]> for Array<T> {
    fn from(elements: &'static [T]) -> Self {
        Self(Kept::Static(elements))
    }
}

impl<T: PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl<T: Eq> Eq for Array<T> {}

impl<T: fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn what_lies_in_the_program_is_copied_before_it_is_written() {
        static ODD: [u8; 2] = [1, 3];
        let mut array = Array::from(&ODD[..]);
        assert!(array.is_static() && array[..] == ODD);
        array.to_mut()[1] = 5;
        assert!(!array.is_static() && array == Array::from(vec![1, 5]));
        assert_eq!(ODD, [1, 3]);
    }
}
