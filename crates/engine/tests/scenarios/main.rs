//! Stories about the engine, readable without knowing it: every file in `scenarios/` is one.
//!
//! Each line is a step; what stands after `->` is what must come of it. The language is explained in
//! `scenarios/README.md`. After each story everything must add up, and a state rebuilt from the facts
//! that were written must hold the same messages.

mod script;
mod words;
mod world;

use script::Step;
use world::World;

#[test]
fn every_story_goes_as_told() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    assert!(files.len() >= 10, "the stories are in {folder}");
    let mut problems = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        problems.extend(play(&text).err().map(|problem| format!("{name}: {problem}")));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn a_story_that_goes_otherwise_is_caught() {
    let cases = [
        ("queue q\nsend a\nreceive c -> b", "line 3: expected \"b\", found \"a delivery=1"),
        ("queue q\nreceive c -> a", "line 2: expected \"a\", found \"nothing\""),
        (
            "queue q\nsend a\nreceive c -> a delivery=2",
            "line 3: expected \"a delivery=2\", found \"a delivery=1",
        ),
        ("send a", "line 1: no queue yet"),
        ("queue q\nqueue q", "line 2: refused entity"),
        ("fly away", "line 1: what is \"fly\"?"),
        ("queue q wings=2", "line 1: what is wings=2?"),
    ];
    for (text, expected) in cases {
        let problem = play(text).unwrap_err();
        assert!(problem.starts_with(expected), "{text:?} gave {problem:?}");
    }
}

/// Plays a story to its end.
fn play(text: &str) -> Result<(), String> {
    let mut world = World::new();
    for (number, line) in text.lines().enumerate() {
        let Some(step) = Step::parse(line) else { continue };
        let outcome = world.step(&step);
        let outcome = match (outcome, &step.expected) {
            (Ok(found), Some(expected)) if world::agree(expected, &found) => Ok(()),
            (Ok(found), Some(expected)) => Err(format!("expected {expected:?}, found {found:?}")),
            (Ok(_), None) => Ok(()),
            (Err(problem), Some(expected)) if *expected == problem => Ok(()),
            (Err(problem), _) => Err(problem),
        };
        outcome.map_err(|problem| format!("line {}: {problem}", number + 1))?;
    }
    world.close()
}
