//! W3C trace context, as senders put it on messages.
//!
//! It is read and never written: the broker passes a message's context on as it came.

use vorrang_amqp::message::Message;

/// The properties that carry it, the standard's own first; the SDKs of Service Bus write the other too.
const PARENT: [&str; 2] = ["traceparent", "Diagnostic-Id"];
const STATE: &str = "tracestate";
/// Characters of `tracestate` that are passed on; the standard asks for as many.
const STATE_CHARS_MAX: usize = 512;

/// Where in a trace a message belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Context {
    /// The trace, as 32 hexadecimal digits.
    pub(super) trace: Box<str>,
    /// The span that sent the message, as 16 of them.
    pub(super) parent: Box<str>,
    /// What vendors add; empty if they do not.
    pub(super) state: Box<str>,
}

impl Context {
    /// The context of a message, if it has one and its sender wants it recorded.
    pub(super) fn of(message: &Message) -> Option<Context> {
        let properties = message.application_properties()?;
        let parent = PARENT.iter().find_map(|name| properties.value(name))?;
        let mut context = Context::parse(parent.as_str()?)?;
        if let Some(state) = properties.value(STATE) {
            let state = state.as_str().unwrap_or_default();
            let fits =
                state.len() <= STATE_CHARS_MAX && state.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            context.state = if fits { state.into() } else { Box::default() };
        }
        Some(context)
    }

    /// Reads `00-<trace>-<span>-<flags>`. A later version may have more behind that.
    fn parse(text: &str) -> Option<Context> {
        let mut parts = text.split('-');
        let [version, trace, parent, flags] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
        let hexadecimal = |text: &str, digits: usize| {
            text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let sound = hexadecimal(version, 2) && hexadecimal(flags, 2) && version != "ff";
        let complete = version != "00" || parts.next().is_none();
        let known =
            |text: &str, digits: usize| hexadecimal(text, digits) && text.bytes().any(|byte| byte != b'0');
        let sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
        let usable = sound && complete && sampled && known(trace, 32) && known(parent, 16);
        usable.then(|| Context { trace: trace.into(), parent: parent.into(), state: Box::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sound_context_that_wants_to_be_recorded_is_taken() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let cases = [
            ("as the standard shows it", format!("00-{trace}-{span}-01"), true),
            ("not recorded by its sender", format!("00-{trace}-{span}-00"), false),
            ("with flags to come", format!("00-{trace}-{span}-ff"), true),
            ("of a later version, with more behind", format!("01-{trace}-{span}-01-more"), true),
            ("of this version, with more behind", format!("00-{trace}-{span}-01-more"), false),
            ("of the version that is none", format!("ff-{trace}-{span}-01"), false),
            ("without a trace", format!("00-{}-{span}-01", "0".repeat(32)), false),
            ("without a span", format!("00-{trace}-{}-01", "0".repeat(16)), false),
            ("in capitals", format!("00-{}-{span}-01", trace.to_uppercase()), false),
            ("a digit short", format!("00-{}-{span}-01", &trace[1..]), false),
            ("not hexadecimal", format!("00-{trace}-{}-01", "g".repeat(16)), false),
            ("no flags", format!("00-{trace}-{span}"), false),
            ("nothing", String::new(), false),
            ("another kind of id", "|abc.def.".to_owned(), false),
        ];
        for (case, text, taken) in cases {
            assert_eq!(Context::parse(&text).is_some(), taken, "{case}: {text}");
        }
    }
}
