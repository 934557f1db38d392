//! A table whose places are used again, with keys that are not.
//!
//! The layer above keeps keys of sessions and links across many steps. A place that was freed and filled anew has
//! another generation, so an old key finds nothing instead of a stranger.

/// Where a thing is, and which of the things that were there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) slot: u32,
    generation: u32,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}", self.slot, self.generation)
    }
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    thing: Option<T>,
}

/// The table. Its length is bounded by its owner, who asks [`Slots::len`] before it inserts.
#[derive(Debug)]
pub(super) struct Slots<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Number of things in the table.
    pub(super) fn len(&self) -> usize {
        self.places.len().saturating_sub(self.free.len())
    }

    /// Puts a thing into the first free place.
    pub(super) fn insert(&mut self, thing: T) -> Key {
        while let Some(slot) = self.free.pop() {
            if let Some(place) = self.places.get_mut(index(slot)) {
                place.thing = Some(thing);
                return Key { slot, generation: place.generation };
            }
        }
        // Most connections have one session and one link, and a vector begins with room for four.
        if self.places.is_empty() {
            self.places.reserve_exact(1);
        }
        let slot = u32::try_from(self.places.len()).expect("limits keep tables far below 2^32 places");
        self.places.push(Place { generation: 0, thing: Some(thing) });
        Key { slot, generation: 0 }
    }

    /// Takes a thing out; its keys are void from now on.
    pub(super) fn remove(&mut self, slot: u32) -> Option<T> {
        let place = self.places.get_mut(index(slot))?;
        let thing = place.thing.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(slot);
        Some(thing)
    }

    /// The slot of a key that is still valid.
    #[inline]
    pub(super) fn resolve(&self, key: Key) -> Option<u32> {
        let place = self.places.get(index(key.slot))?;
        (place.generation == key.generation && place.thing.is_some()).then_some(key.slot)
    }

    /// The key of the thing in a slot.
    #[inline]
    pub(super) fn key(&self, slot: u32) -> Option<Key> {
        let place = self.places.get(index(slot))?;
        place.thing.as_ref()?;
        Some(Key { slot, generation: place.generation })
    }

    /// The thing of a key that is still valid.
    #[inline]
    pub(super) fn find_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.places.get_mut(index(key.slot))?;
        if place.generation == key.generation { place.thing.as_mut() } else { None }
    }

    /// The thing in a slot, with its key.
    #[inline]
    pub(super) fn entry_mut(&mut self, slot: u32) -> Option<(Key, &mut T)> {
        let place = self.places.get_mut(index(slot))?;
        Some((Key { slot, generation: place.generation }, place.thing.as_mut()?))
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&T> {
        self.places.get(index(slot))?.thing.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.places.get_mut(index(slot))?.thing.as_mut()
    }
}

#[inline]
fn index(slot: u32) -> usize {
    usize::try_from(slot).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_thing_that_left_finds_nothing_even_when_its_place_is_used_again() {
        let mut slots = Slots::new();
        let first = slots.insert("first");
        assert_eq!(slots.remove(first.slot), Some("first"));
        let second = slots.insert("second");
        assert_eq!(first.slot, second.slot);
        assert_eq!(slots.resolve(first), None);
        assert_eq!(slots.resolve(second).and_then(|slot| slots.get(slot)), Some(&"second"));
        assert_eq!(slots.len(), 1);
    }

    #[test]
    fn a_single_thing_takes_the_room_of_one() {
        let mut slots = Slots::new();
        slots.insert(1);
        assert_eq!(slots.places.capacity(), 1);
        slots.insert(2);
        assert_eq!(slots.len(), 2);
    }
}
