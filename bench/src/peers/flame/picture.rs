//! A flame graph as SVG text: who called stands below whom it called, and is as wide as the time that took.

use std::fmt::Write;

use super::stacks::{Node, Owner, Stacks};
use crate::peers::plot::escaped;

const WIDTH: f64 = 1_200.0;
const ROW: f64 = 16.0;
const TOP: f64 = 44.0;
/// Narrower ones are left out: a reader sees nothing of them.
const WIDTH_MIN: f64 = 0.8;
/// About as wide as a letter is.
const LETTER: f64 = 6.2;
/// Fewer letters say nothing.
const LETTERS_MIN: usize = 4;
/// Whose code it is, in colours that are told apart by those who see fewer of them, too.
const COLOURS: [(Owner, &str, &str); 4] = [
    (Owner::Ours, "#e69f00", "Vorrang"),
    (Owner::Library, "#f0e442", "libraries"),
    (Owner::Kernel, "#56b4e9", "the system"),
    (Owner::Thread, "#cccccc", "threads"),
];

/// A picture to be made.
pub(super) struct Picture<'a> {
    pub(super) title: &'a str,
    pub(super) stacks: &'a Stacks,
}

impl Picture<'_> {
    /// The picture.
    pub(super) fn render(&self) -> String {
        let all = f64::from(self.stacks.samples().max(1));
        let height = TOP + ROW * f64::from(rows(&self.stacks.root, all)) + 8.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"10\">\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"8\" y=\"18\" font-size=\"14\" font-family=\"sans-serif\" font-weight=\"bold\">{}</text>\n",
            escaped(self.title)
        );
        let mut x = 8.0;
        for (owner, colour, name) in COLOURS {
            let share = match owner {
                Owner::Thread => String::new(),
                _ => format!(" {:.0} %", self.stacks.share(owner) * 100.0),
            };
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"26\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" y=\"35\">{name}{share}</text>",
                x + 14.0
            );
            x += 130.0;
        }
        draw(&mut svg, &self.stacks.root, all, 0.0, height - 8.0);
        svg.push_str("</svg>\n");
        svg
    }
}

/// How wide something with so many samples is.
fn width(samples: u32, all: f64) -> f64 {
    f64::from(samples) / all * WIDTH
}

/// Rows of what is drawn above this.
fn rows(node: &Node, all: f64) -> u32 {
    let seen = node.below.values().filter(|below| width(below.samples, all) >= WIDTH_MIN);
    seen.map(|below| 1 + rows(below, all)).max().unwrap_or(0)
}

/// What stands on this, from `x` on; `y` is its upper edge.
fn draw(svg: &mut String, node: &Node, all: f64, mut x: f64, y: f64) {
    for ((owner, name), below) in &node.below {
        let width = width(below.samples, all);
        if width >= WIDTH_MIN {
            let share = f64::from(below.samples) / all * 100.0;
            let upper = y - ROW;
            let _ = write!(
                svg,
                "<g><title>{}, {share:.1} %</title><rect x=\"{x:.1}\" y=\"{upper:.0}\" width=\"{:.1}\" height=\"{:.0}\" fill=\"{}\"/>",
                escaped(name),
                width - 0.3,
                ROW - 1.0,
                colour(*owner)
            );
            if let Some(text) = label(name, width) {
                let _ = write!(
                    svg,
                    "<text x=\"{:.1}\" y=\"{:.0}\">{}</text>",
                    x + 2.0,
                    upper + 11.0,
                    escaped(&text)
                );
            }
            svg.push_str("</g>\n");
            draw(svg, below, all, x, upper);
        }
        x += width;
    }
}

fn colour(owner: Owner) -> &'static str {
    COLOURS.iter().find(|(of, ..)| *of == owner).map_or("#ffffff", |(_, colour, _)| *colour)
}

/// As much of a name as there is room for: of one that is too long, its end.
fn label(name: &str, width: f64) -> Option<String> {
    let room = letters(width)?;
    let count = name.chars().count();
    if count <= room {
        return Some(name.to_owned());
    }
    let end: String = name.chars().skip(count - (room - 1)).collect();
    Some(format!("…{end}"))
}

/// How many letters find room.
fn letters(width: f64) -> Option<usize> {
    (LETTERS_MIN..=200)
        .take_while(|count| f64::from(u32::try_from(*count).unwrap_or(u32::MAX)) * LETTER <= width)
        .last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_half_of_the_time_is_half_as_wide_and_stands_on_its_caller() {
        let stacks = Stacks::of_script(
            "net\n 1 vorrang_amqp::<b>\n 1 vorrang_server::a\n\nnet\n 1 vorrang_server::a\n\n",
        );
        let svg = Picture { title: "a & b", stacks: &stacks }.render();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(
            svg.contains("a &amp; b") && svg.contains(">Vorrang 100 %<") && svg.contains(">the system 0 %<")
        );
        for expected in [
            "<title>net, 100.0 %</title><rect x=\"0.0\" y=\"76\" width=\"1199.7\"",
            "<title>vorrang_server::a, 100.0 %</title><rect x=\"0.0\" y=\"60\" width=\"1199.7\"",
            "<title>vorrang_amqp::&lt;b&gt;, 50.0 %</title><rect x=\"0.0\" y=\"44\" width=\"599.7\"",
        ] {
            assert!(svg.contains(expected), "{expected} is not in {svg}");
        }
    }

    #[test]
    fn a_name_is_cut_to_its_room() {
        for (name, width, expected) in [
            ("abc", 100.0, Some("abc")),
            ("abcdefgh", 5.5 * LETTER, Some("…efgh")),
            ("äöüäöü", 4.0 * LETTER, Some("…äöü")),
            ("abc", 3.0 * LETTER, None),
        ] {
            assert_eq!(label(name, width).as_deref(), expected, "{name}");
        }
    }
}
