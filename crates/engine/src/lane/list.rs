//! A linked list through the records: O(1) at both ends and for taking out of the middle.

use crate::store::{Handle, Place, Record, Slab};

/// A list of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) head: Handle,
    pub(crate) tail: Handle,
    pub(crate) len: u32,
}

impl Default for List {
    fn default() -> Self {
        List { head: Handle::NONE, tail: Handle::NONE, len: 0 }
    }
}

impl List {
    pub(crate) fn push_back(&mut self, records: &mut Slab<Record>, handle: Handle) {
        if let Some(last) = records.get_mut(self.tail) {
            last.next = handle;
        }
        if let Some(record) = records.get_mut(handle) {
            record.prev = self.tail;
            record.next = Handle::NONE;
            record.set_place(Place::Listed);
        }
        self.tail = handle;
        if !self.head.is_some() {
            self.head = handle;
        }
        self.len = self.len.saturating_add(1);
    }

    pub(crate) fn push_front(&mut self, records: &mut Slab<Record>, handle: Handle) {
        if let Some(first) = records.get_mut(self.head) {
            first.prev = handle;
        }
        if let Some(record) = records.get_mut(handle) {
            record.prev = Handle::NONE;
            record.next = self.head;
            record.set_place(Place::Listed);
        }
        self.head = handle;
        if !self.tail.is_some() {
            self.tail = handle;
        }
        self.len = self.len.saturating_add(1);
    }

    /// Takes a message out. It must be in this very list.
    pub(crate) fn unlink(&mut self, records: &mut Slab<Record>, handle: Handle) {
        let Some(&Record { prev, next, .. }) = records.get(handle) else { return };
        link(records, prev, next);
        if self.head == handle {
            self.head = next;
        }
        if self.tail == handle {
            self.tail = prev;
        }
        self.len = self.len.saturating_sub(1);
    }

    /// Appends the whole of another list.
    pub(crate) fn append(&mut self, records: &mut Slab<Record>, other: &List) {
        if !other.head.is_some() {
            return;
        }
        if self.tail.is_some() {
            link(records, self.tail, other.head);
        } else {
            self.head = other.head;
        }
        self.tail = other.tail;
        self.len = self.len.saturating_add(other.len);
    }

    /// The messages in order.
    pub(crate) fn iter<'a>(&self, records: &'a Slab<Record>) -> impl Iterator<Item = (Handle, &'a Record)> {
        let first = self.head;
        std::iter::successors(records.get(first).map(|record| (first, record)), |(_, record)| {
            records.get(record.next).map(|next| (record.next, next))
        })
    }
}

/// Makes two messages neighbours; either may be none.
fn link(records: &mut Slab<Record>, left: Handle, right: Handle) {
    if let Some(record) = records.get_mut(left) {
        record.next = right;
    }
    if let Some(record) = records.get_mut(right) {
        record.prev = left;
    }
}
