//! Samples of stacks, added up: a tree of functions by who called them, below the threads.

use std::collections::BTreeMap;

/// Deeper than this, what is called counts with its caller.
const DEPTH_MAX: usize = 40;
/// Addresses from here on are the kernel's.
const KERNEL: u64 = 1 << 63;

/// Whose code a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// A thread, which is nobody's code.
    Thread,
    /// One of our crates.
    Ours,
    /// The system's.
    Kernel,
    /// A library's.
    Library,
}

/// A function in one place of the tree: how often it was seen there, and what it called.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) samples: u32,
    pub(super) below: BTreeMap<(Owner, String), Node>,
}

/// All samples of a recording.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    pub(super) root: Node,
    /// By function, how often it was on top.
    own: BTreeMap<(Owner, String), u32>,
}

impl Stacks {
    /// What `perf script` wrote with the fields `comm`, `ip` and `sym`: for each sample the name of the thread, then a line for
    /// each function, the innermost first, then an empty line.
    pub(super) fn of_script(text: &str) -> Stacks {
        let mut stacks = Stacks::default();
        let mut thread = None;
        let mut frames = Vec::new();
        for line in text.lines().chain([""]) {
            match (line.trim(), thread) {
                ("", Some(name)) => {
                    frames.reverse();
                    stacks.add(name, &frames);
                    frames.clear();
                    thread = None;
                }
                ("", None) => {}
                (name, None) => thread = Some(name),
                (frame, Some(_)) => frames.extend(function(frame)),
            }
        }
        stacks
    }

    /// One sample, its outermost function first.
    fn add(&mut self, thread: &str, frames: &[(Owner, String)]) {
        // How a thread or a task came to be run is the same for all of them, and many functions long.
        let begin = frames.iter().position(|(owner, _)| *owner == Owner::Ours);
        let begin =
            begin.or_else(|| frames.iter().position(|(owner, _)| *owner == Owner::Kernel)).unwrap_or(0);
        let shown = frames.get(begin..).unwrap_or_default();
        if let Some(top) = shown.last() {
            *self.own.entry(top.clone()).or_default() += 1;
        }
        self.root.samples += 1;
        let mut place = &mut self.root;
        for frame in std::iter::once(&(Owner::Thread, of_its_kind(thread))).chain(shown).take(DEPTH_MAX) {
            place = place.below.entry(frame.clone()).or_default();
            place.samples += 1;
        }
    }

    pub(super) fn samples(&self) -> u32 {
        self.root.samples
    }

    /// How often somebody's code was on top, as a part of all samples.
    pub(super) fn share(&self, of: Owner) -> f64 {
        let own = self.own.iter().filter(|((owner, _), _)| *owner == of).map(|(_, own)| own);
        f64::from(own.sum::<u32>()) / f64::from(self.samples().max(1))
    }

    /// The functions that were on top most often, and how often, as parts of all samples.
    pub(super) fn most(&self, count: usize) -> Vec<(&str, f64)> {
        let mut functions: Vec<(&str, u32)> =
            self.own.iter().map(|((_, name), own)| (name.as_str(), *own)).collect();
        functions.sort_by_key(|(_, own)| std::cmp::Reverse(*own));
        let all = f64::from(self.samples().max(1));
        functions.into_iter().take(count).map(|(name, own)| (name, f64::from(own) / all)).collect()
    }
}

/// Threads that do the same are one: what tells them apart is a number at their end.
fn of_its_kind(thread: &str) -> String {
    thread.trim_end_matches(|end: char| end.is_ascii_digit() || end == '-').to_owned()
}

/// The function of a line; none for what has no name.
fn function(line: &str) -> Option<(Owner, String)> {
    let (address, name) = line.split_once(' ')?;
    let name = name.trim();
    if name.is_empty() || name == "[unknown]" {
        return None;
    }
    let is_kernel = u64::from_str_radix(address, 16).is_ok_and(|address| address >= KERNEL);
    let owner = match () {
        () if is_kernel => Owner::Kernel,
        () if name.contains("vorrang_") => Owner::Ours,
        () => Owner::Library,
    };
    Some((owner, without_hash(name).to_owned()))
}

/// The name without the number that the compiler puts behind it.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((before, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            before
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
           shard-0 \n\
\t    55d0c0ffee01 vorrang_log::append\n\
\t    55d0c0ffee02 vorrang_broker::shard::step::h0123456789abcdef\n\
\t    55d0c0ffee03 <core::future::Poll as std::thread::Run>::run\n\
\n\
           shard-1 \n\
\tffffffff81000001 __x64_sys_write\n\
\t    7f0000000001 [unknown]\n\
\t    55d0c0ffee02 vorrang_broker::shard::step::h0123456789abcdef\n\
\n\
      vorrang-net \n\
\tffffffff81000002 schedule\n\
\t    7f0000000002 __libc_start\n";

    #[test]
    fn samples_are_added_up_by_thread_and_caller() {
        let stacks = Stacks::of_script(SCRIPT);
        assert_eq!(stacks.samples(), 3);
        let shard = &stacks.root.below[&(Owner::Thread, "shard".to_owned())];
        assert_eq!(shard.samples, 2, "two threads of a kind");
        let step = &shard.below[&(Owner::Ours, "vorrang_broker::shard::step".to_owned())];
        assert_eq!(step.samples, 2, "what ran the thread is left out, and the hash");
        assert_eq!(step.below[&(Owner::Kernel, "__x64_sys_write".to_owned())].samples, 1);
        assert_eq!(step.below[&(Owner::Ours, "vorrang_log::append".to_owned())].samples, 1);
        let net = &stacks.root.below[&(Owner::Thread, "vorrang-net".to_owned())];
        assert_eq!(net.below.keys().collect::<Vec<_>>(), [&(Owner::Kernel, "schedule".to_owned())]);
    }

    #[test]
    fn functions_are_told_by_what_they_do_themselves() {
        let twice = format!("{SCRIPT}\n{SCRIPT}\n{}", SCRIPT.split("\n\n").next().unwrap());
        let stacks = Stacks::of_script(&twice);
        let (function, share) = stacks.most(1)[0];
        assert_eq!(function, "vorrang_log::append");
        assert!((share - 3.0 / 7.0).abs() < 1e-9, "{share}");
        let shares = [Owner::Ours, Owner::Kernel, Owner::Library].map(|owner| stacks.share(owner));
        for (share, samples) in shares.into_iter().zip([3.0, 4.0, 0.0]) {
            assert!((share - samples / 7.0).abs() < 1e-9, "{shares:?}");
        }
        assert_eq!(Stacks::of_script("").samples(), 0);
    }

    #[test]
    fn a_stack_without_end_has_an_end_in_the_tree() {
        let frames = "\t 1 vorrang_x::again\n".repeat(4 * DEPTH_MAX);
        let stacks = Stacks::of_script(&format!("shard\n{frames}"));
        let mut depth = 0;
        let mut place = &stacks.root;
        while let Some(below) = place.below.values().next() {
            (place, depth) = (below, depth + 1);
        }
        assert_eq!(depth, DEPTH_MAX);
    }
}
