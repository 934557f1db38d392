//! Slots in pages, named by a handle and used again when freed.
//!
//! [`Slab::freeze`] shares the pages, and the first write to one afterwards takes it back, copying it if the
//! frozen slab is still there. So whether anybody shares a page is asked once after each freezing: in between it
//! lies where it is written, with no counter to check and no pointer more to follow. Freed slots form a list
//! through themselves, so an empty slab needs no book beside it.

use std::sync::Arc;

/// Slots in a page. A power of two, so that finding one is a shift and a mask; with 48-byte records a
/// page is 12 KB, near the size that copies fastest under a running snapshot.
const PAGE_SLOTS: u32 = 256;

/// A slot's number. [`Handle::NONE`] is no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Handle(pub(crate) u32);

impl Handle {
    pub(crate) const NONE: Handle = Handle(u32::MAX);

    pub(crate) fn is_some(self) -> bool {
        self != Handle::NONE
    }

    fn page(self) -> Option<usize> {
        usize::try_from(self.0 / PAGE_SLOTS).ok()
    }

    fn slot(self) -> Option<usize> {
        usize::try_from(self.0 % PAGE_SLOTS).ok()
    }
}

/// What can lie in a slab: it must say when it is free, and then carry the number of the next free slot.
pub(crate) trait Slot: Clone {
    /// A free slot, followed in the list of free ones by `next`.
    fn freed(next: Handle) -> Self;
    /// The next free slot, if this one is free.
    fn next_free(&self) -> Option<Handle>;
}

/// Slots in pages.
#[derive(Debug, Clone)]
pub(crate) struct Slab<T> {
    pages: Vec<Page<T>>,
    free: Handle,
    /// Slots ever used: handles below this number exist.
    used: u32,
    live: u32,
}

#[derive(Debug, Clone)]
enum Page<T> {
    Own(Vec<T>),
    Shared(Arc<Vec<T>>),
}

impl<T: Clone> Page<T> {
    fn slots(&self) -> &[T] {
        match self {
            Page::Own(slots) => slots,
            Page::Shared(slots) => slots,
        }
    }

    /// To be changed: a shared page becomes this slab's own first.
    fn own(&mut self) -> &mut Vec<T> {
        match self {
            Page::Own(slots) => slots,
            Page::Shared(_) => self.take_back(),
        }
    }

    #[cold]
    fn take_back(&mut self) -> &mut Vec<T> {
        if let Page::Shared(slots) = self {
            *self = Page::Own(Arc::unwrap_or_clone(std::mem::take(slots)));
        }
        match self {
            Page::Own(slots) => slots,
            Page::Shared(slots) => Arc::make_mut(slots),
        }
    }

    /// The same page for another slab.
    fn share(&mut self) -> Page<T> {
        if let Page::Own(slots) = self {
            *self = Page::Shared(Arc::new(std::mem::take(slots)));
        }
        self.clone()
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { pages: Vec::new(), free: Handle::NONE, used: 0, live: 0 }
    }
}

impl<T: Slot> Slab<T> {
    /// How many slots are in use.
    pub(crate) fn len(&self) -> u32 {
        self.live
    }

    /// Whether another slot can be had: handles are 32 bits wide.
    pub(crate) fn has_room(&self) -> bool {
        self.free.is_some() || self.used < Handle::NONE.0
    }

    /// What lies in a slot that is in use.
    pub(crate) fn get(&self, handle: Handle) -> Option<&T> {
        let found = self.pages.get(handle.page()?)?.slots().get(handle.slot()?)?;
        found.next_free().is_none().then_some(found)
    }

    /// The same, to be changed. Copies the page first if a snapshot still shares it.
    pub(crate) fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        let found = self.raw_mut(handle)?;
        found.next_free().is_none().then_some(found)
    }

    /// Fills a slot. [`Handle::NONE`] if every handle is taken, which [`Slab::has_room`] tells before.
    pub(crate) fn insert(&mut self, value: T) -> Handle {
        if self.free.is_some() {
            let handle = self.free;
            if let Some(slot) = self.raw_mut(handle)
                && let Some(next) = slot.next_free()
            {
                *slot = value;
                self.free = next;
                self.live = self.live.saturating_add(1);
                return handle;
            }
        }
        let handle = Handle(self.used);
        if handle == Handle::NONE {
            return handle;
        }
        if handle.0.is_multiple_of(PAGE_SLOTS) {
            let slots = usize::try_from(PAGE_SLOTS).unwrap_or(0);
            self.pages.push(Page::Own(Vec::with_capacity(slots)));
        }
        if let Some(page) = self.pages.last_mut() {
            page.own().push(value);
        }
        self.used = self.used.saturating_add(1);
        self.live = self.live.saturating_add(1);
        handle
    }

    /// Empties a slot and gives back what was in it.
    pub(crate) fn remove(&mut self, handle: Handle) -> Option<T> {
        let next = self.free;
        let slot = self.get_mut(handle)?;
        let value = std::mem::replace(slot, T::freed(next));
        self.free = handle;
        self.live = self.live.saturating_sub(1);
        Some(value)
    }

    /// A copy that shares every page until one of both writes to it.
    pub(crate) fn freeze(&mut self) -> Slab<T> {
        let pages = self.pages.iter_mut().map(Page::share).collect();
        Slab { pages, free: self.free, used: self.used, live: self.live }
    }

    /// Everything in use, in the order of handles.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Handle, &T)> {
        let slots = self.pages.iter().flat_map(Page::slots);
        (0..self.used).map(Handle).zip(slots).filter(|(_, slot)| slot.next_free().is_none())
    }

    fn raw_mut(&mut self, handle: Handle) -> Option<&mut T> {
        self.pages.get_mut(handle.page()?)?.own().get_mut(handle.slot()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    enum Cell {
        Used(u64),
        Free(Handle),
    }

    impl Slot for Cell {
        fn freed(next: Handle) -> Self {
            Cell::Free(next)
        }
        fn next_free(&self) -> Option<Handle> {
            match self {
                Cell::Used(_) => None,
                Cell::Free(next) => Some(*next),
            }
        }
    }

    #[test]
    fn freed_slots_are_used_again_before_new_ones() {
        let mut slab = Slab::default();
        let handles: Vec<_> = (0..600).map(|n| slab.insert(Cell::Used(n))).collect();
        for gone in [5, 300, 599] {
            assert_eq!(slab.remove(handles[gone]), Some(Cell::Used(u64::try_from(gone).unwrap())));
            assert_eq!(slab.get(handles[gone]), None);
            assert_eq!(slab.remove(handles[gone]), None, "freed twice");
        }
        assert_eq!(slab.len(), 597);
        let mut again: Vec<_> = (0..3).map(|n| slab.insert(Cell::Used(1_000 + n))).collect();
        again.sort_unstable();
        assert_eq!(again, [handles[5], handles[300], handles[599]]);
        assert_eq!(slab.insert(Cell::Used(7)), Handle(600));
        assert_eq!(slab.iter().count(), 601);
    }

    #[test]
    fn a_frozen_copy_does_not_see_later_changes() {
        let mut slab = Slab::default();
        let handle = slab.insert(Cell::Used(1));
        let frozen = slab.freeze();
        *slab.get_mut(handle).unwrap() = Cell::Used(2);
        assert_eq!(frozen.get(handle), Some(&Cell::Used(1)));
        assert_eq!(slab.get(handle), Some(&Cell::Used(2)));
    }

    #[test]
    fn a_page_is_copied_only_while_a_frozen_copy_needs_it() {
        let mut slab = Slab::default();
        let handle = slab.insert(Cell::Used(1));
        let place = |slab: &Slab<Cell>| std::ptr::from_ref(slab.get(handle).unwrap());
        let before = place(&slab);
        drop(slab.freeze());
        *slab.get_mut(handle).unwrap() = Cell::Used(2);
        assert_eq!(place(&slab), before, "nobody shares it any more");
        let frozen = slab.freeze();
        *slab.get_mut(handle).unwrap() = Cell::Used(3);
        assert_eq!(place(&frozen), before);
        let copied = place(&slab);
        assert_ne!(copied, before);
        slab.remove(handle);
        assert_eq!(slab.insert(Cell::Used(4)), handle);
        assert_eq!(place(&slab), copied, "it is copied once");
        assert_eq!(frozen.get(handle), Some(&Cell::Used(2)));
    }
}
