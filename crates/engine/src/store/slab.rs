//! Slots in pages, named by a handle and used again when freed.
//!
//! What is inserted in a row lies in a row: a page is filled from its beginning to its end, and a page in which nothing
//! lies any more is filled like that again. Messages come, are handed out and go in nearly the same order, so that each of
//! those finds the next one beside the last, where the processor has fetched it already. Slots taken in the order in which
//! they were freed would soon lie about, and each step would wait for memory. Only when too much of the
//! memory lies free between what stays for long are single freed slots filled.
//!
//! [`Slab::freeze`] shares the pages, and the first write to one afterwards takes it back, copying it if the
//! frozen slab is still there. So whether anybody shares a page is asked once after each freezing: in between it
//! lies where it is written, with no counter to check and no pointer more to follow. The freed slots of a page form a list
//! through themselves, so a page needs no book beside it.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Slots in a page. A power of two, so that finding one is a shift and a mask; with 48-byte records a
/// page is 12 KB, near the size that copies fastest under a running snapshot.
const PAGE_SLOTS: u32 = 256;
/// Free slots from which on a page with something in it may be filled up.
const SPARSE_SLOTS: u32 = PAGE_SLOTS / 4;
/// Pages that handles can name.
const PAGES_MAX: u32 = Handle::NONE.0 / PAGE_SLOTS;
/// Empty pages that keep their memory, beyond as many as are in use.
const EMPTY_PAGES_MIN: usize = 64;

/// A slot's number. [`Handle::NONE`] is no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Handle(pub(crate) u32);

impl Handle {
    pub(crate) const NONE: Handle = Handle(u32::MAX);

    pub(crate) fn is_some(self) -> bool {
        self != Handle::NONE
    }

    fn page_number(self) -> u32 {
        self.0 / PAGE_SLOTS
    }

    fn page(self) -> Option<usize> {
        usize::try_from(self.page_number()).ok()
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
    /// The number of the page that is being filled.
    filling: u32,
    /// Pages in which nothing lies, but for the one being filled; the last one emptied is the next to be filled.
    empty: Vec<u32>,
    /// Pages in which something lies and much is free, but for the one being filled.
    sparse: BTreeSet<u32>,
    live: u32,
}

#[derive(Debug, Clone)]
struct Page<T> {
    /// Slots beyond the last were not used since the page was empty.
    slots: Slots<T>,
    /// The first freed slot.
    free: Handle,
    /// Slots in use.
    live: u32,
}

#[derive(Debug, Clone)]
enum Slots<T> {
    Own(Vec<T>),
    Shared(Arc<Vec<T>>),
}

impl<T: Clone> Slots<T> {
    fn all(&self) -> &[T] {
        match self {
            Slots::Own(slots) => slots,
            Slots::Shared(slots) => slots,
        }
    }

    /// To be changed: shared slots become this slab's own first.
    fn own(&mut self) -> &mut Vec<T> {
        match self {
            Slots::Own(slots) => slots,
            Slots::Shared(_) => self.take_back(),
        }
    }

    #[cold]
    fn take_back(&mut self) -> &mut Vec<T> {
        if let Slots::Shared(slots) = self {
            *self = Slots::Own(Arc::unwrap_or_clone(std::mem::take(slots)));
        }
        match self {
            Slots::Own(slots) => slots,
            Slots::Shared(slots) => Arc::make_mut(slots),
        }
    }

    /// The same slots for another slab.
    fn share(&mut self) -> Slots<T> {
        if let Slots::Own(slots) = self {
            *self = Slots::Shared(Arc::new(std::mem::take(slots)));
        }
        self.clone()
    }
}

impl<T: Slot> Page<T> {
    fn new() -> Page<T> {
        Page { slots: Slots::Own(Vec::new()), free: Handle::NONE, live: 0 }
    }

    fn is_full(&self) -> bool {
        self.live >= PAGE_SLOTS
    }

    /// Fills a slot of the page with that number, which is not full.
    fn insert(&mut self, number: u32, value: T) -> Handle {
        let slots = self.slots.own();
        self.live = self.live.saturating_add(1);
        let filled = u32::try_from(slots.len()).unwrap_or(PAGE_SLOTS);
        if filled < PAGE_SLOTS {
            if slots.capacity() == 0 {
                slots.reserve_exact(usize::try_from(PAGE_SLOTS).unwrap_or(0));
            }
            slots.push(value);
            return Handle(number.saturating_mul(PAGE_SLOTS).saturating_add(filled));
        }
        let handle = self.free;
        if let Some(slot) = handle.slot().and_then(|slot| slots.get_mut(slot)) {
            self.free = slot.next_free().unwrap_or(Handle::NONE);
            *slot = value;
        }
        handle
    }

    /// Empties a slot. If it was the last in use, the page is as new.
    fn remove(&mut self, handle: Handle) -> Option<T> {
        let slots = self.slots.own();
        let slot = slots.get_mut(handle.slot()?).filter(|slot| slot.next_free().is_none())?;
        let value = std::mem::replace(slot, T::freed(self.free));
        self.free = handle;
        self.live = self.live.saturating_sub(1);
        if self.live == 0 {
            slots.clear();
            self.free = Handle::NONE;
        }
        Some(value)
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { pages: Vec::new(), filling: 0, empty: Vec::new(), sparse: BTreeSet::new(), live: 0 }
    }
}

impl<T: Slot> Slab<T> {
    /// How many slots are in use.
    pub(crate) fn len(&self) -> u32 {
        self.live
    }

    /// Whether another slot can be had: handles are 32 bits wide.
    pub(crate) fn has_room(&self) -> bool {
        let filling = self.page(self.filling).is_some_and(|page| !page.is_full());
        filling || self.count() < PAGES_MAX || !self.empty.is_empty() || !self.sparse.is_empty()
    }

    /// What lies in a slot that is in use.
    pub(crate) fn get(&self, handle: Handle) -> Option<&T> {
        let found = self.pages.get(handle.page()?)?.slots.all().get(handle.slot()?)?;
        found.next_free().is_none().then_some(found)
    }

    /// The same, to be changed. Copies the page first if a snapshot still shares it.
    pub(crate) fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        let found = self.pages.get_mut(handle.page()?)?.slots.own().get_mut(handle.slot()?)?;
        found.next_free().is_none().then_some(found)
    }

    /// Fills a slot. [`Handle::NONE`] if there is none, which [`Slab::has_room`] tells before.
    pub(crate) fn insert(&mut self, value: T) -> Handle {
        if self.page(self.filling).is_none_or(Page::is_full) {
            let Some(next) = self.next_to_fill() else { return Handle::NONE };
            self.filling = next;
        }
        let number = self.filling;
        let Some(page) = self.page_mut(number) else { return Handle::NONE };
        let handle = page.insert(number, value);
        self.live = self.live.saturating_add(1);
        handle
    }

    /// The page to fill next, now that one is full.
    #[cold]
    fn next_to_fill(&mut self) -> Option<u32> {
        if let Some(empty) = self.empty.pop() {
            return Some(empty);
        }
        let count = self.count();
        let free = count.saturating_mul(PAGE_SLOTS).saturating_sub(self.live);
        if (free > self.live / 4 || count == PAGES_MAX)
            && let Some(sparse) = self.sparse.pop_first()
        {
            return Some(sparse);
        }
        (count < PAGES_MAX).then(|| {
            self.pages.push(Page::new());
            count
        })
    }

    /// Empties a slot and gives back what was in it.
    pub(crate) fn remove(&mut self, handle: Handle) -> Option<T> {
        let number = handle.page_number();
        let page = self.page_mut(number)?;
        let value = page.remove(handle)?;
        let live = page.live;
        self.live = self.live.saturating_sub(1);
        if number != self.filling {
            if live == 0 {
                self.emptied(number);
            } else if live == PAGE_SLOTS - SPARSE_SLOTS {
                self.sparse.insert(number);
            }
        }
        Some(value)
    }

    /// Nothing lies in a page any more. It keeps its memory, unless there are many such.
    #[cold]
    fn emptied(&mut self, number: u32) {
        self.sparse.remove(&number);
        self.empty.push(number);
        let used = self.pages.len().saturating_sub(self.empty.len());
        if self.empty.len() > used.saturating_add(EMPTY_PAGES_MIN)
            && let Some(page) = self.page_mut(number)
        {
            *page = Page::new();
        }
    }

    /// A copy that shares every page until one of both writes to it.
    pub(crate) fn freeze(&mut self) -> Slab<T> {
        let share = |page: &mut Page<T>| Page { slots: page.slots.share(), free: page.free, live: page.live };
        Slab {
            pages: self.pages.iter_mut().map(share).collect(),
            filling: self.filling,
            empty: self.empty.clone(),
            sparse: self.sparse.clone(),
            live: self.live,
        }
    }

    /// Everything in use, in the order of handles.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Handle, &T)> {
        let firsts = (0..).step_by(usize::try_from(PAGE_SLOTS).unwrap_or(1));
        firsts.zip(&self.pages).flat_map(|(first, page): (u32, _)| {
            let slots = (first..).map(Handle).zip(page.slots.all());
            slots.filter(|(_, slot)| slot.next_free().is_none())
        })
    }

    fn count(&self) -> u32 {
        u32::try_from(self.pages.len()).unwrap_or(PAGES_MAX)
    }

    fn page(&self, number: u32) -> Option<&Page<T>> {
        self.pages.get(usize::try_from(number).ok()?)
    }

    fn page_mut(&mut self, number: u32) -> Option<&mut Page<T>> {
        self.pages.get_mut(usize::try_from(number).ok()?)
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

    /// A slab with so many cells, and their handles.
    fn filled(count: u32) -> (Slab<Cell>, Vec<Handle>) {
        let mut slab = Slab::default();
        let handles = (0..count).map(|n| slab.insert(Cell::Used(n.into()))).collect();
        (slab, handles)
    }

    #[test]
    fn a_freed_slot_is_free_once() {
        let (mut slab, handles) = filled(600);
        for gone in [5, 300, 599] {
            assert_eq!(slab.remove(handles[gone]), Some(Cell::Used(u64::try_from(gone).unwrap())));
            assert_eq!(slab.get(handles[gone]), None);
            assert_eq!(slab.get_mut(handles[gone]), None);
            assert_eq!(slab.remove(handles[gone]), None, "freed twice");
        }
        assert_eq!(slab.len(), 597);
        assert_eq!(slab.iter().count(), 597);
        assert_eq!(slab.get(Handle(600)), None);
        assert_eq!(slab.get(Handle::NONE), None);
    }

    #[test]
    fn what_comes_and_goes_in_order_lies_in_order_for_ever() {
        let (mut slab, mut handles) = filled(2_000);
        for n in 0..100_000 {
            // Several take from the front at the same time, each some at once.
            let place = [0, 40, 10, 80][n % 4];
            slab.remove(handles.remove(place)).unwrap();
            handles.push(slab.insert(Cell::Used(0)));
        }
        let beside = handles.windows(2).filter(|pair| pair[1].0 == pair[0].0 + 1).count();
        assert!(beside > 1_900, "{beside} of 1999 lie beside the one before");
        let pages = slab.pages.len();
        assert!(pages <= 12, "{pages} pages for what fits into 8");
    }

    #[test]
    fn slots_between_what_stays_are_filled_when_they_are_many() {
        let (mut slab, handles) = filled(100 * PAGE_SLOTS);
        for handle in handles.iter().filter(|handle| handle.0 % 10 != 0) {
            slab.remove(*handle).unwrap();
        }
        let again: Vec<_> = (0..20_000).map(|_| slab.insert(Cell::Used(1))).collect();
        assert!(slab.pages.len() <= 111, "{} pages for what fits into 89", slab.pages.len());
        assert!(again.iter().all(|handle| slab.get(*handle) == Some(&Cell::Used(1))));
        let all: BTreeSet<_> = slab.iter().map(|(handle, _)| handle).collect();
        assert_eq!(all.len(), usize::try_from(slab.len()).unwrap());
    }

    #[test]
    fn most_of_the_memory_is_given_back_when_everything_goes() {
        let (mut slab, handles) = filled(1_000 * PAGE_SLOTS);
        for handle in handles {
            slab.remove(handle).unwrap();
        }
        let kept =
            slab.pages.iter().filter(|page| matches!(&page.slots, Slots::Own(own) if own.capacity() > 0));
        assert!(kept.count() <= 1_000 / 2 + EMPTY_PAGES_MIN);
        assert_eq!((slab.len(), slab.iter().count()), (0, 0));
        let handle = slab.insert(Cell::Used(3));
        assert_eq!(slab.get(handle), Some(&Cell::Used(3)));
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
