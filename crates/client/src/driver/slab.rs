//! Values under small numbers that are used again.

/// A table whose places are given out and taken back.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.places.len().saturating_sub(self.free.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The place the next value will get.
    pub(super) fn next_place(&self) -> u32 {
        let end = || u32::try_from(self.places.len()).expect("tables here are bounded far below 2^32");
        self.free.last().copied().unwrap_or_else(end)
    }

    /// Puts a value at [`Slab::next_place`].
    pub(super) fn insert(&mut self, value: T) -> u32 {
        let place = self.next_place();
        self.free.pop();
        match self.places.get_mut(index(place)) {
            Some(free) => *free = Some(value),
            None => self.places.push(Some(value)),
        }
        place
    }

    pub(super) fn get(&self, place: u32) -> Option<&T> {
        self.places.get(index(place))?.as_ref()
    }

    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.places.get_mut(index(place))?.as_mut()
    }

    pub(super) fn remove(&mut self, place: u32) -> Option<T> {
        let value = self.places.get_mut(index(place))?.take()?;
        self.free.push(place);
        Some(value)
    }

    /// All values, in the order of places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }

    /// All places in use.
    pub(super) fn places(&self) -> Vec<u32> {
        (0..).zip(&self.places).filter_map(|(place, value)| value.is_some().then_some(place)).collect()
    }

    /// Takes all values.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + use<'_, T> {
        self.free.clear();
        self.places.drain(..).flatten()
    }
}

fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut slab = Slab::new();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!(slab.remove(a), Some('a'));
        assert_eq!((slab.remove(a), slab.len()), (None, 1));
        assert_eq!(slab.next_place(), a);
        assert_eq!(slab.insert('c'), a);
        assert_eq!((slab.get(b), slab.places()), (Some(&'b'), vec![a, b]));
        assert_eq!(slab.drain().collect::<String>(), "cb");
        assert!(slab.is_empty());
        assert_eq!(slab.insert('d'), 0);
    }
}
