//! Frames and methods of AMQP 0-9-1, the few that are needed.

use anyhow::{Context, Result, bail};

use crate::peers::peer::Message;

/// Class and method number.
pub(super) type Method = (u16, u16);

/// The methods, by the numbers of the specification.
pub(super) mod method {
    use super::Method;

    pub(crate) const START: Method = (10, 10);
    pub(crate) const START_OK: Method = (10, 11);
    pub(crate) const TUNE: Method = (10, 30);
    pub(crate) const TUNE_OK: Method = (10, 31);
    pub(crate) const OPEN: Method = (10, 40);
    pub(crate) const OPEN_OK: Method = (10, 41);
    pub(crate) const CHANNEL_OPEN: Method = (20, 10);
    pub(crate) const CHANNEL_OPEN_OK: Method = (20, 11);
    pub(crate) const EXCHANGE_DECLARE: Method = (40, 10);
    pub(crate) const EXCHANGE_DECLARE_OK: Method = (40, 11);
    pub(crate) const QUEUE_DECLARE: Method = (50, 10);
    pub(crate) const QUEUE_DECLARE_OK: Method = (50, 11);
    pub(crate) const QUEUE_BIND: Method = (50, 20);
    pub(crate) const QUEUE_BIND_OK: Method = (50, 21);
    pub(crate) const QOS: Method = (60, 10);
    pub(crate) const QOS_OK: Method = (60, 11);
    pub(crate) const CONSUME: Method = (60, 20);
    pub(crate) const CONSUME_OK: Method = (60, 21);
    pub(crate) const PUBLISH: Method = (60, 40);
    pub(crate) const DELIVER: Method = (60, 60);
    pub(crate) const ACK: Method = (60, 80);
    pub(crate) const CONFIRM_SELECT: Method = (85, 10);
    pub(crate) const CONFIRM_SELECT_OK: Method = (85, 11);
}

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const END: u8 = 0xce;
/// The channel of everything but the connection itself.
const CHANNEL: u16 = 1;
/// What we tell the server; RabbitMQ's own default.
const FRAME_BYTES_MAX: u32 = 131_072;
/// Priorities a class stands for: the more urgent, the higher.
const PRIORITIES: [u8; 4] = [9, 6, 4, 1];

/// A frame as it came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// With its arguments.
    Method(Method, &'a [u8]),
    /// With the size of the body that follows.
    Header(u64),
    Body(&'a [u8]),
    /// A heartbeat.
    Other,
}

/// A value in a table of arguments.
#[derive(Debug, Clone, Copy)]
pub(super) enum Argument<'a> {
    Text(&'a str),
    Number(u32),
}

/// The first frame, and the bytes it takes; none if it is not all there.
pub(super) fn parse(input: &[u8]) -> Result<Option<(Frame<'_>, usize)>> {
    let Some(head) = input.first_chunk::<7>() else { return Ok(None) };
    let [kind, _, _, size @ ..] = *head;
    let end = 7 + usize::try_from(u32::from_be_bytes(size))?;
    let Some(payload) = input.get(7..end) else { return Ok(None) };
    match input.get(end) {
        None => return Ok(None),
        Some(&END) => {}
        Some(_) => bail!("a frame without its end"),
    }
    let frame = match kind {
        METHOD => {
            let [first, second, third, fourth] = *payload.first_chunk().context("a short method")?;
            let found = (u16::from_be_bytes([first, second]), u16::from_be_bytes([third, fourth]));
            Frame::Method(found, payload.get(4..).unwrap_or_default())
        }
        HEADER => {
            let size = payload.get(4..).and_then(|rest| rest.first_chunk()).context("a short header")?;
            Frame::Header(u64::from_be_bytes(*size))
        }
        BODY => Frame::Body(payload),
        _ => Frame::Other,
    };
    Ok(Some((frame, end + 1)))
}

/// Tag and whether all before it are meant, of an acknowledgement.
pub(super) fn acknowledged(arguments: &[u8]) -> Option<(u64, bool)> {
    let tag = u64::from_be_bytes(*arguments.first_chunk()?);
    Some((tag, arguments.get(8)? & 1 == 1))
}

/// The tag of a delivery, which is behind the consumer's name.
pub(super) fn delivery_tag(arguments: &[u8]) -> Option<u64> {
    let (length, rest) = arguments.split_first()?;
    Some(u64::from_be_bytes(*rest.get(usize::from(*length)..)?.first_chunk()?))
}

/// A message: the method, the header with its properties, the body.
pub(super) fn publish(output: &mut Vec<u8>, message: &Message<'_>) {
    on_channel(output, method::PUBLISH, |output| {
        output.extend_from_slice(&[0, 0]);
        // The default exchange takes the key for a queue's name.
        let (exchange, key) =
            message.key.map_or_else(|| ("", "q".to_owned()), |key| ("topic", format!("k{key}")));
        short(output, exchange);
        short(output, &key);
        output.push(0);
    });
    framed(output, HEADER, CHANNEL, |output| {
        output.extend_from_slice(&[0, 60, 0, 0]);
        output.extend_from_slice(&u64::try_from(message.body.len()).unwrap_or(0).to_be_bytes());
        // Delivery mode and priority are there; the mode says persistent.
        output.extend_from_slice(&0x1800_u16.to_be_bytes());
        output.push(2);
        output.push(PRIORITIES.get(usize::from(message.class)).copied().unwrap_or(0));
    });
    framed(output, BODY, CHANNEL, |output| output.extend_from_slice(message.body));
}

pub(super) fn start_ok(output: &mut Vec<u8>, user: &str, password: &str) {
    method_frame(output, 0, method::START_OK, |output| {
        table(output, &[]);
        short(output, "PLAIN");
        long(output, format!("\0{user}\0{password}").as_bytes());
        short(output, "en_US");
    });
}

pub(super) fn tune_ok(output: &mut Vec<u8>) {
    method_frame(output, 0, method::TUNE_OK, |output| {
        output.extend_from_slice(&2_047_u16.to_be_bytes());
        output.extend_from_slice(&FRAME_BYTES_MAX.to_be_bytes());
        // No heartbeats.
        output.extend_from_slice(&[0, 0]);
    });
}

pub(super) fn connection_open(output: &mut Vec<u8>) {
    method_frame(output, 0, method::OPEN, |output| {
        short(output, "/");
        output.extend_from_slice(&[0, 0]);
    });
}

pub(super) fn channel_open(output: &mut Vec<u8>) {
    on_channel(output, method::CHANNEL_OPEN, |output| output.push(0));
}

pub(super) fn exchange_declare(output: &mut Vec<u8>, name: &str, kind: &str) {
    on_channel(output, method::EXCHANGE_DECLARE, |output| {
        output.extend_from_slice(&[0, 0]);
        short(output, name);
        short(output, kind);
        output.push(0b10);
        table(output, &[]);
    });
}

pub(super) fn queue_declare(output: &mut Vec<u8>, name: &str, arguments: &[(&str, Argument<'_>)]) {
    on_channel(output, method::QUEUE_DECLARE, |output| {
        output.extend_from_slice(&[0, 0]);
        short(output, name);
        // Durable.
        output.push(0b10);
        table(output, arguments);
    });
}

pub(super) fn queue_bind(output: &mut Vec<u8>, queue: &str, exchange: &str, key: &str) {
    on_channel(output, method::QUEUE_BIND, |output| {
        output.extend_from_slice(&[0, 0]);
        short(output, queue);
        short(output, exchange);
        short(output, key);
        output.push(0);
        table(output, &[]);
    });
}

pub(super) fn qos(output: &mut Vec<u8>, prefetch: u16) {
    on_channel(output, method::QOS, |output| {
        output.extend_from_slice(&[0; 4]);
        output.extend_from_slice(&prefetch.to_be_bytes());
        output.push(0);
    });
}

pub(super) fn consume(output: &mut Vec<u8>, queue: &str) {
    on_channel(output, method::CONSUME, |output| {
        output.extend_from_slice(&[0, 0]);
        short(output, queue);
        short(output, "");
        output.push(0);
        table(output, &[]);
    });
}

pub(super) fn confirm_select(output: &mut Vec<u8>) {
    on_channel(output, method::CONFIRM_SELECT, |output| output.push(0));
}

pub(super) fn ack(output: &mut Vec<u8>, tag: u64, multiple: bool) {
    on_channel(output, method::ACK, |output| {
        output.extend_from_slice(&tag.to_be_bytes());
        output.push(u8::from(multiple));
    });
}

fn on_channel(output: &mut Vec<u8>, method: Method, arguments: impl FnOnce(&mut Vec<u8>)) {
    method_frame(output, CHANNEL, method, arguments);
}

fn method_frame(output: &mut Vec<u8>, channel: u16, method: Method, arguments: impl FnOnce(&mut Vec<u8>)) {
    framed(output, METHOD, channel, |output| {
        output.extend_from_slice(&method.0.to_be_bytes());
        output.extend_from_slice(&method.1.to_be_bytes());
        arguments(output);
    });
}

fn framed(output: &mut Vec<u8>, kind: u8, channel: u16, payload: impl FnOnce(&mut Vec<u8>)) {
    output.push(kind);
    output.extend_from_slice(&channel.to_be_bytes());
    sized(output, payload);
    output.push(END);
}

/// Four bytes that say how long what follows is.
fn sized(output: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let place = output.len();
    output.extend_from_slice(&[0; 4]);
    content(output);
    let size = u32::try_from(output.len() - place - 4).unwrap_or(0);
    if let Some(bytes) = output.get_mut(place..place + 4) {
        bytes.copy_from_slice(&size.to_be_bytes());
    }
}

fn short(output: &mut Vec<u8>, text: &str) {
    output.push(u8::try_from(text.len()).unwrap_or(0));
    output.extend_from_slice(text.as_bytes());
}

fn long(output: &mut Vec<u8>, bytes: &[u8]) {
    sized(output, |output| output.extend_from_slice(bytes));
}

fn table(output: &mut Vec<u8>, entries: &[(&str, Argument<'_>)]) {
    sized(output, |output| {
        for (name, argument) in entries {
            short(output, name);
            match argument {
                Argument::Text(text) => {
                    output.push(b'S');
                    long(output, text.as_bytes());
                }
                Argument::Number(number) => {
                    output.push(b'I');
                    output.extend_from_slice(&number.to_be_bytes());
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_three_frames_that_are_read_as_they_were_written() {
        let mut output = Vec::new();
        publish(&mut output, &Message { body: b"hello", class: 0, key: None });
        let (frame, first) = parse(&output).unwrap().unwrap();
        assert!(matches!(frame, Frame::Method(method::PUBLISH, _)));
        let (frame, second) = parse(&output[first..]).unwrap().unwrap();
        assert_eq!(frame, Frame::Header(5));
        let (frame, third) = parse(&output[first + second..]).unwrap().unwrap();
        assert_eq!(frame, Frame::Body(b"hello"));
        assert_eq!(first + second + third, output.len());
        for end in 0..first {
            assert_eq!(parse(&output[..end]).unwrap(), None, "{end} bytes");
        }
    }

    #[test]
    fn a_frame_must_end_with_its_end() {
        let mut output = Vec::new();
        ack(&mut output, 7, true);
        let last = output.len() - 1;
        output[last] = 0;
        assert!(parse(&output).is_err());
    }

    #[test]
    fn tags_are_found_in_confirms_and_deliveries() {
        let mut output = Vec::new();
        ack(&mut output, 300, true);
        let Some((Frame::Method(method::ACK, arguments), _)) = parse(&output).unwrap() else {
            panic!("not an acknowledgement");
        };
        assert_eq!(acknowledged(arguments), Some((300, true)));
        assert_eq!(acknowledged(&arguments[..8]), None);
        assert_eq!(delivery_tag(b"\x02ab\x00\x00\x00\x00\x00\x00\x00\x09\x00"), Some(9));
        assert_eq!(delivery_tag(b"\x20ab"), None);
    }
}
