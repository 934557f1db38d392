//! Shared access keys in the file: of the namespace (`[[key]]`) and of one entity (`authorization_rule`).
//!
//! A key's text stands in the file or, better, in a file of its own (`primary_key_file`). No problem
//! reported from here repeats a key.

use std::fs;
use std::io::{self, Read as _};
use std::sync::Arc;

use vorrang_engine::entity::authorization::{
    AuthorizationRule, KEY_BYTES_MAX, KEY_NAME_CHARS_MAX, Rights, Secret,
};

use super::problem::Mistake;
use super::reader::{Reader, Table};
use super::shape::Shape;

/// What a key permits, as Service Bus writes it.
pub(super) const RIGHTS: Shape = Shape::Word(&["Send", "Listen", "Manage"]);
const NAME: Shape = Shape::Text("a name of 1 to 256 characters");
const KEY: Shape = Shape::Secret("a key of 1 to 256 bytes");
const KEY_FILE: Shape = Shape::Text("the path of a file that holds a key");

/// The keys under `name` in a table.
pub(super) fn read(reader: &mut Reader, table: &Table<'_>, name: &str) -> Vec<AuthorizationRule> {
    let tables = reader.tables(table, name);
    let mut rules: Vec<AuthorizationRule> = Vec::new();
    for table in &tables {
        let Some(rule) = rule(reader, table) else { continue };
        if rules.iter().any(|earlier| earlier.key_name == rule.key_name) {
            let text = "is defined twice".to_owned();
            reader.problem(table.line, &table.key_of("name"), Mistake::Other(text));
        }
        rules.push(rule);
    }
    rules
}

fn rule(reader: &mut Reader, table: &Table<'_>) -> Option<AuthorizationRule> {
    let known = ["name", "rights", "primary_key", "primary_key_file", "secondary_key", "secondary_key_file"];
    reader.refuse_unknown(table, known);
    let name = reader.needed(table, "name", &NAME.allowed());
    let name = name.and_then(|place| {
        reader.plain(&place, NAME, |given| {
            let chars = given.words()?.chars().count();
            given.words().filter(|_| chars <= KEY_NAME_CHARS_MAX).map(Arc::from)
        })
    });
    let rights = rights(reader, table);
    let primary = key(reader, table, "primary_key");
    if table.find("primary_key").is_none() && table.find("primary_key_file").is_none() {
        let allowed = "a key here, or the path of a file that holds it in primary_key_file".to_owned();
        reader.problem(table.line, &table.key_of("primary_key"), Mistake::Missing { allowed });
    }
    let secondary = key(reader, table, "secondary_key").or_else(|| primary.clone());
    Some(AuthorizationRule {
        key_name: name?,
        primary_key: primary?,
        secondary_key: secondary?,
        rights: rights?,
    })
}

fn rights(reader: &mut Reader, table: &Table<'_>) -> Option<Rights> {
    let allowed = "a list of Send, Listen and Manage";
    let place = reader.needed(table, "rights", allowed)?;
    let mut rights = Rights::default();
    for item in reader.items(&place, allowed) {
        match reader.plain(&item, RIGHTS, |given| given.word(RIGHTS))? {
            "Send" => rights.send = true,
            "Listen" => rights.listen = true,
            _ => rights = Rights { send: true, listen: true, manage: true },
        }
    }
    if rights == Rights::default() {
        let mistake = Mistake::Value { value: "nothing".to_owned(), allowed: allowed.to_owned() };
        reader.problem(place.line, &place.key, mistake);
        return None;
    }
    Some(rights)
}

/// A key that stands here or in a file; `None` if there is none, or if it cannot be used.
fn key(reader: &mut Reader, table: &Table<'_>, name: &str) -> Option<Secret> {
    let usable = |text: &str| (1..=KEY_BYTES_MAX).contains(&text.len());
    if let Some(place) = table.find(name) {
        let text =
            reader.plain(&place, KEY, |given| given.text().filter(|text| usable(text)).map(str::to_owned))?;
        return Some(Secret::new(&text));
    }
    let place = table.find(&format!("{name}_file"))?;
    let path = reader.plain(&place, KEY_FILE, |given| given.words().map(str::to_owned))?;
    let text = match read_start(&path) {
        Ok(text) if usable(text.trim()) => return Some(Secret::new(text.trim())),
        Ok(_) => format!("names {path:?}, which holds no key of 1 to {KEY_BYTES_MAX} bytes"),
        Err(error) => format!("names {path:?}, which cannot be read: {error}"),
    };
    reader.problem(place.line, &place.key, Mistake::Other(text));
    None
}

/// As much of a file as a key with a line's end could be; it may be a device that never ends.
fn read_start(path: &str) -> io::Result<String> {
    let most = u64::try_from(KEY_BYTES_MAX).unwrap_or(u64::MAX).saturating_mul(2);
    let mut text = String::new();
    fs::File::open(path)?.take(most).read_to_string(&mut text)?;
    Ok(text)
}
