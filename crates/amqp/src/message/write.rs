//! Writing message sections in order, straight into the caller's buffer.

use crate::decode::Composite;
use crate::descriptor::{self, Descriptor};
use crate::encode::{Encode, MapWriter, Output, put_binary, put_descriptor, put_map};
use crate::message::{Header, Properties};

/// Writes a header section.
#[inline]
pub fn put_header<O: Output>(out: &mut O, header: &Header) {
    header.encode_composite(out);
}

/// Writes a properties section.
pub fn put_properties<O: Output>(out: &mut O, properties: &Properties) {
    properties.encode_composite(out);
}

/// Writes a section that is a map: annotations, application properties, a footer.
#[inline]
pub fn put_map_section<O: Output>(
    out: &mut O,
    section: Descriptor,
    entries: impl FnOnce(&mut MapWriter<'_, O>),
) {
    put_descriptor(out, section);
    put_map(out, entries);
}

/// Writes a data section.
pub fn put_data<O: Output>(out: &mut O, data: &[u8]) {
    put_descriptor(out, descriptor::DATA);
    put_binary(out, data);
}

/// Writes an `amqp-value` section.
pub fn put_value<O: Output>(out: &mut O, value: &impl Encode) {
    put_descriptor(out, descriptor::AMQP_VALUE);
    value.encode(out);
}
