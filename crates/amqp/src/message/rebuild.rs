//! A stored message on its way out: new sections in front, the bare message behind as one slice.

use crate::descriptor;
use crate::encode::{Encode, MapWriter, Output, put_descriptor};
use crate::message::{Header, Message, Properties, put_header, put_map_section, put_properties};
use crate::value::Map;

/// Sections of the bare message that change on the way out. By default none does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Changes<'c> {
    /// New properties.
    pub properties: Option<&'c Properties>,
    /// New application properties; an empty map removes the section.
    pub application_properties: Option<&'c Map>,
}

impl Message {
    /// Writes the sections in front of this message's unchanged part to `out` and returns that part, its end.
    ///
    /// What a receiver gets is the bytes appended to `out` followed by the returned slice. A header is always
    /// written, since some clients cannot do without; both kinds of annotations are written even when empty. The
    /// message's own header and annotations are left out: copy what shall survive with [`MapWriter::keep_except`].
    pub fn rebuild<O: Output>(
        &self,
        out: &mut O,
        header: &Header,
        delivery_annotations: impl FnOnce(&mut MapWriter<'_, O>),
        message_annotations: impl FnOnce(&mut MapWriter<'_, O>),
        changes: Changes<'_>,
    ) -> &[u8] {
        put_header(out, header);
        put_map_section(out, descriptor::DELIVERY_ANNOTATIONS, delivery_annotations);
        put_map_section(out, descriptor::MESSAGE_ANNOTATIONS, message_annotations);
        let mut tail = self.layout.bare_start();
        if let Some(properties) = changes.properties {
            put_properties(out, properties);
            tail = self.layout.behind_properties();
        }
        if let Some(map) = changes.application_properties {
            // Whatever of the properties was to travel in the tail now has to come before the new map.
            out.put(self.encoded.get(tail..self.layout.behind_properties()).unwrap_or_default());
            if !map.is_empty() {
                put_descriptor(out, descriptor::APPLICATION_PROPERTIES);
                map.encode(out);
            }
            tail = self.layout.body().start;
        }
        self.encoded.get(tail..).unwrap_or_default()
    }
}
