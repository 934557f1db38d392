//! Redis Streams: `XADD`, `XREADGROUP`, `XACK` and `XDEL`, pipelined.
//!
//! A stream is not shortened by acknowledging, so that a queue on it must delete what is done; both commands take
//! all of a batch at once. Classes are streams of their own, read from the most urgent down.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::peers::peer::{CLASSES, Clients, Delivery, Layout, Message, Receiver, Sender, Stamp};
use crate::peers::socket::{Socket, line, number};

const STREAMS: [&str; 4] = ["q0", "q1", "q2", "q3"];
/// Values within values in an answer; a read of streams has four.
const DEPTH_MAX: u32 = 8;

/// Clients of one server.
#[derive(Debug)]
pub(crate) struct Redis {
    pub(crate) port: u16,
    pub(crate) layout: Layout,
}

impl Redis {
    fn streams(&self) -> &'static [&'static str] {
        let count = if self.layout == Layout::Priorities { usize::from(CLASSES) } else { 1 };
        STREAMS.get(..count).unwrap_or_default()
    }
}

impl Clients for Redis {
    fn probe(&self) -> Result<()> {
        let mut socket = Socket::connect(self.port)?;
        command(&mut socket.output, &[b"PING"]);
        match socket.ask(|input| parse(input, 0))? {
            Value::Text(text) if text == b"PONG" => Ok(()),
            other => bail!("redis says {other:?}"),
        }
    }

    fn prepare(&self) -> Result<()> {
        let mut socket = Socket::connect(self.port)?;
        for stream in self.streams() {
            command(&mut socket.output, &[b"XGROUP", b"CREATE", stream.as_bytes(), b"g", b"0", b"MKSTREAM"]);
            match socket.ask(|input| parse(input, 0))? {
                Value::Error(error) if !error.starts_with(b"BUSYGROUP") => {
                    bail!("redis says {}", String::from_utf8_lossy(&error))
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        Ok(Box::new(Adder { socket: Socket::connect(self.port)?, streams: self.streams(), answered: 0 }))
    }

    fn receiver(&self, prefetch: u32) -> Result<Box<dyn Receiver>> {
        let mut socket = Socket::connect(self.port)?;
        command(&mut socket.output, &[b"CLIENT", b"ID"]);
        let Value::Number(id) = socket.ask(|input| parse(input, 0))? else {
            bail!("redis gave no client id")
        };
        Ok(Box::new(Reader {
            socket,
            streams: self.streams(),
            name: format!("c{id}"),
            prefetch,
            held: BTreeMap::new(),
            done: Vec::new(),
            owed: VecDeque::new(),
            next: 0,
            settled: 0,
        }))
    }
}

struct Adder {
    socket: Socket,
    streams: &'static [&'static str],
    answered: u64,
}

impl Sender for Adder {
    fn send(&mut self, message: &Message<'_>) -> Result<bool> {
        let stream =
            self.streams.get(usize::from(message.class)).or(self.streams.first()).context("no stream")?;
        command(&mut self.socket.output, &[b"XADD", stream.as_bytes(), b"*", b"b", message.body]);
        Ok(true)
    }

    fn acknowledged(&mut self, wait: Duration, seen: &mut dyn FnMut(u64)) -> Result<()> {
        self.socket.flush()?;
        self.socket.fill(wait)?;
        while let Some((value, bytes)) = parse(self.socket.input(), 0)? {
            if let Value::Error(error) = value {
                bail!("redis says {}", String::from_utf8_lossy(&error));
            }
            self.socket.consume(bytes);
            seen(self.answered);
            self.answered += 1;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
enum Owed {
    Entries,
    Acknowledged,
    Deleted,
}

struct Reader {
    socket: Socket,
    streams: &'static [&'static str],
    name: String,
    prefetch: u32,
    /// Tokens, and the stream and entry each stands for.
    held: BTreeMap<u64, (usize, Vec<u8>)>,
    /// Settled and not yet written.
    done: Vec<(usize, Vec<u8>)>,
    owed: VecDeque<Owed>,
    next: u64,
    settled: u64,
}

impl Reader {
    fn read(&mut self, streams: &[&str], count: u64, block: Option<Duration>) {
        let count = count.to_string();
        let block = block.map(|wait| wait.as_millis().max(1).to_string());
        let mut words: Vec<&[u8]> =
            vec![b"XREADGROUP", b"GROUP", b"g", self.name.as_bytes(), b"COUNT", count.as_bytes()];
        if let Some(block) = &block {
            words.extend([b"BLOCK".as_slice(), block.as_bytes()]);
        }
        words.push(b"STREAMS");
        words.extend(streams.iter().map(|stream| stream.as_bytes()));
        words.extend(streams.iter().map(|_| b">".as_slice()));
        command(&mut self.socket.output, &words);
        self.owed.push_back(Owed::Entries);
    }

    fn write_done(&mut self) {
        for (place, stream) in self.streams.iter().enumerate() {
            let ids: Vec<&[u8]> =
                self.done.iter().filter(|(of, _)| *of == place).map(|(_, id)| id.as_slice()).collect();
            if ids.is_empty() {
                continue;
            }
            let mut words: Vec<&[u8]> = vec![b"XACK", stream.as_bytes(), b"g"];
            words.extend(&ids);
            command(&mut self.socket.output, &words);
            words.splice(..3, [b"XDEL".as_slice(), stream.as_bytes()]);
            command(&mut self.socket.output, &words);
            self.owed.extend([Owed::Acknowledged, Owed::Deleted]);
        }
        self.done.clear();
    }

    /// Reads answers until none is owed or the time is up.
    fn answers(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery)) -> Result<usize> {
        self.socket.flush()?;
        let mut taken = 0;
        while !self.owed.is_empty() {
            let Some((value, bytes)) = parse(self.socket.input(), 0)? else {
                if !self.socket.fill(wait)? {
                    break;
                }
                continue;
            };
            self.socket.consume(bytes);
            match (self.owed.pop_front(), value) {
                (_, Value::Error(error)) => bail!("redis says {}", String::from_utf8_lossy(&error)),
                (Some(Owed::Acknowledged), Value::Number(count)) => self.settled += count,
                (Some(Owed::Entries), Value::List(streams)) => {
                    for stream in streams {
                        taken += self.entries(stream, take)?;
                    }
                }
                _ => {}
            }
        }
        Ok(taken)
    }

    /// One stream's name and entries.
    fn entries(&mut self, stream: Value, take: &mut dyn FnMut(Delivery)) -> Result<usize> {
        let Value::List(pair) = stream else { bail!("a stream that is not a list") };
        let [Value::Text(name), Value::List(entries)] = pair.as_slice() else {
            bail!("a stream that is not a pair")
        };
        let place =
            self.streams.iter().position(|stream| stream.as_bytes() == name).context("an unknown stream")?;
        for entry in entries {
            let Value::List(parts) = entry else { bail!("an entry that is not a list") };
            let [Value::Text(id), Value::List(fields)] = parts.as_slice() else {
                bail!("an entry without fields")
            };
            let Some(Value::Text(body)) = fields.get(1) else { bail!("an entry without a body") };
            let stamp = Stamp::read(body).context("an entry without a stamp")?;
            let token = self.next;
            self.next += 1;
            self.held.insert(token, (place, id.clone()));
            take(Delivery { token, stamp });
        }
        Ok(entries.len())
    }
}

impl Receiver for Reader {
    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery)) -> Result<()> {
        self.write_done();
        let held = u64::try_from(self.held.len())?;
        let room = u64::from(self.prefetch).saturating_sub(held);
        let wanted = room >= u64::from(self.prefetch.div_ceil(2))
            && self.owed.iter().all(|owed| !matches!(owed, Owed::Entries));
        let block = (held == 0).then_some(wait);
        if !wanted {
            self.answers(wait, take)?;
            return Ok(());
        }
        let streams = self.streams;
        if let [only] = streams {
            self.read(&[only], room, block);
            self.answers(wait + Duration::from_millis(20), take)?;
            return Ok(());
        }
        for stream in streams {
            self.read(&[stream], room, None);
            if self.answers(Duration::from_secs(1), take)? > 0 {
                return Ok(());
            }
        }
        if block.is_some() {
            // COUNT holds for each stream: one entry, so that an urgent message is not behind many others.
            self.read(streams, 1, block);
            self.answers(wait + Duration::from_millis(20), take)?;
        }
        Ok(())
    }

    fn settle(&mut self, token: u64) -> Result<()> {
        self.done.push(self.held.remove(&token).context("a token that is not held")?);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.write_done();
        self.socket.flush()
    }

    fn settled(&self) -> u64 {
        self.settled
    }
}

fn command(output: &mut Vec<u8>, words: &[&[u8]]) {
    output.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        output.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        output.extend_from_slice(word);
        output.extend_from_slice(b"\r\n");
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Text(Vec<u8>),
    Number(u64),
    Error(Vec<u8>),
    List(Vec<Value>),
    Nothing,
}

/// One value, and the bytes it takes; none if it is not all there.
fn parse(input: &[u8], depth: u32) -> Result<Option<(Value, usize)>> {
    let Some((text, head)) = line(input) else { return Ok(None) };
    let Some((kind, rest)) = text.split_first() else { bail!("an empty line") };
    match kind {
        b'+' => Ok(Some((Value::Text(rest.to_vec()), head))),
        b'-' => Ok(Some((Value::Error(rest.to_vec()), head))),
        b':' => Ok(Some((Value::Number(number(rest).context("not a count")?), head))),
        b'$' | b'*' if rest == b"-1" => Ok(Some((Value::Nothing, head))),
        b'$' => {
            let end = head + usize::try_from(number(rest).context("not a length")?)?;
            let Some(body) = input.get(head..end).filter(|_| input.len() >= end + 2) else { return Ok(None) };
            Ok(Some((Value::Text(body.to_vec()), end + 2)))
        }
        b'*' if depth < DEPTH_MAX => {
            let (mut items, mut place) = (Vec::new(), head);
            for _ in 0..number(rest).context("not a length")? {
                let Some((item, bytes)) = parse(input.get(place..).unwrap_or_default(), depth + 1)? else {
                    return Ok(None);
                };
                items.push(item);
                place += bytes;
            }
            Ok(Some((Value::List(items), place)))
        }
        _ => bail!("redis says {}", String::from_utf8_lossy(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_how_long_its_words_are() {
        let mut output = Vec::new();
        command(&mut output, &[b"XADD", b"q", b"\r\n"]);
        assert_eq!(output, b"*3\r\n$4\r\nXADD\r\n$1\r\nq\r\n$2\r\n\r\n\r\n");
    }

    #[test]
    fn values_are_parsed_when_all_of_them_is_there() {
        let input = b"*2\r\n$1\r\nq\r\n*2\r\n:7\r\n*-1\r\n";
        for end in 0..input.len() {
            assert_eq!(parse(&input[..end], 0).unwrap(), None, "{end} bytes");
        }
        let inner = Value::List(vec![Value::Number(7), Value::Nothing]);
        let expected = Value::List(vec![Value::Text(b"q".to_vec()), inner]);
        assert_eq!(parse(input, 0).unwrap(), Some((expected, input.len())));
    }

    #[test]
    fn errors_are_values_and_nonsense_is_not() {
        assert_eq!(parse(b"-ERR no\r\n", 0).unwrap(), Some((Value::Error(b"ERR no".to_vec()), 9)));
        assert!(parse(b"what\r\n", 0).is_err());
        assert!(parse(&b"*1\r\n".repeat(40), 0).is_err(), "depth has a bound");
    }
}
