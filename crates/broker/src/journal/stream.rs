//! Facts in a snapshot: one after the other, each with its kind and length.
//!
//! ```text
//! version u8 | piece … | end
//! piece = kind u8 | length u32 | fields
//! ```
//!
//! Beside facts a snapshot holds what the shard knows about the log itself: which regions large
//! messages span. The end is a piece of its own, so that a stream that was cut is noticed.

use super::facts;
use super::field::Error;
use vorrang_engine::Location;
use vorrang_engine::fact::Fact;

/// The version of streams written by this release.
const VERSION: u8 = 1;
/// A message's payload begins in an earlier region than it ends in.
const SPAN: u8 = 200;
/// Nothing follows.
const END: u8 = 201;
const HEADER_BYTES: usize = 5;

/// Something in a snapshot.
#[derive(Debug, Clone)]
pub enum Piece {
    /// A fact.
    Fact(Fact),
    /// Large messages that end in one region begin in an earlier one. Any location in each will do.
    Span {
        /// Where they end.
        last: Location,
        /// Where they begin.
        first: Location,
    },
}

/// Begins a stream.
pub fn begin(out: &mut Vec<u8>) {
    out.push(VERSION);
}

/// Appends a fact; one that is not kept adds nothing.
pub fn fact(fact: &Fact, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    match facts::encode(fact, out) {
        Some(kind) => close(kind, start, out),
        None => out.truncate(start),
    }
}

/// Appends a span.
pub fn span(last: Location, first: Location, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    out.extend_from_slice(&last.0.to_le_bytes());
    out.extend_from_slice(&first.0.to_le_bytes());
    close(SPAN, start, out);
}

/// Ends a stream.
pub fn end(out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    close(END, start, out);
}

fn close(kind: u8, start: usize, out: &mut [u8]) {
    let length = out.len().saturating_sub(start.saturating_add(HEADER_BYTES));
    let length = u32::try_from(length).expect("a fact is far smaller than 4 GiB").to_le_bytes();
    if let Some([first, rest @ ..]) = out.get_mut(start..start.saturating_add(HEADER_BYTES)) {
        *first = kind;
        rest.copy_from_slice(&length);
    }
}

/// Reads a stream that comes in blocks.
#[derive(Debug, Default)]
pub struct Reader {
    pending: Vec<u8>,
    begun: bool,
    ended: bool,
}

impl Reader {
    /// Takes the next block and hands out every piece that is complete.
    pub fn feed(&mut self, block: &[u8], mut visit: impl FnMut(Piece)) -> Result<(), Error> {
        self.pending.extend_from_slice(block);
        let pending = std::mem::take(&mut self.pending);
        let mut rest = &*pending;
        if !self.begun
            && let Some((&version, after)) = rest.split_first()
        {
            if version != VERSION {
                return Err(Error::Choice { what: "version of a snapshot's content", value: version });
            }
            (self.begun, rest) = (true, after);
        }
        while let Some(([kind, length @ ..], after)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
            let Some((fields, after)) = after.split_at_checked(length) else { break };
            if self.ended {
                return Err(Error::Trailing { left: rest.len() });
            }
            match *kind {
                SPAN => visit(read_span(fields)?),
                END => self.ended = true,
                kind => visit(Piece::Fact(facts::decode(kind, fields, None)?)),
            }
            rest = after;
        }
        self.pending = rest.to_vec();
        Ok(())
    }

    /// Checks that the stream ended where it should.
    pub fn finish(self) -> Result<(), Error> {
        if !self.pending.is_empty() {
            return Err(Error::Trailing { left: self.pending.len() });
        }
        if self.ended { Ok(()) } else { Err(Error::Short { wanted: HEADER_BYTES, left: 0 }) }
    }
}

fn read_span(fields: &[u8]) -> Result<Piece, Error> {
    let short = Error::Short { wanted: 16, left: fields.len() };
    let (last, rest) = fields.split_first_chunk().ok_or(short.clone())?;
    let (first, rest) = rest.split_first_chunk().ok_or(short)?;
    if !rest.is_empty() {
        return Err(Error::Trailing { left: rest.len() });
    }
    let location = |bytes: &[u8; 8]| Location(u64::from_le_bytes(*bytes));
    Ok(Piece::Span { last: location(last), first: location(first) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::samples::{FACTS, Source};

    fn sample() -> (Vec<u8>, Vec<String>) {
        let entropy: Vec<u8> = (0..=255).collect();
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        begin(&mut bytes);
        for which in (1..=FACTS).filter(|which| !(4..=6).contains(which)) {
            let made = Source(&entropy).fact(which);
            fact(&made, &mut bytes);
            expected.push(format!("{:?}", Piece::Fact(made)));
        }
        let (last, first) = (Location(9 << 32), Location(8 << 32));
        span(last, first, &mut bytes);
        expected.push(format!("{:?}", Piece::Span { last, first }));
        end(&mut bytes);
        (bytes, expected)
    }

    fn read(blocks: impl Iterator<Item = Vec<u8>>) -> Result<Vec<String>, Error> {
        let mut reader = Reader::default();
        let mut found = Vec::new();
        for block in blocks {
            reader.feed(&block, |piece| found.push(format!("{piece:?}")))?;
        }
        reader.finish().map(|()| found)
    }

    #[test]
    fn a_stream_comes_back_however_it_is_cut_into_blocks() {
        let (bytes, expected) = sample();
        for size in [1, 2, 7, 100, 100_000] {
            assert_eq!(read(bytes.chunks(size).map(<[u8]>::to_vec)), Ok(expected.clone()), "{size}");
        }
    }

    #[test]
    fn a_stream_that_was_cut_is_noticed_at_every_byte() {
        let (bytes, _) = sample();
        for cut in 0..bytes.len() {
            assert!(read([bytes[..cut].to_vec()].into_iter()).is_err(), "cut at {cut}");
        }
        let mut longer = bytes;
        longer.push(0);
        assert!(read([longer].into_iter()).is_err());
    }

    #[test]
    fn facts_nobody_keeps_add_nothing() {
        let mut bytes = Vec::new();
        fact(&Fact::Pumped, &mut bytes);
        assert!(bytes.is_empty());
    }
}
