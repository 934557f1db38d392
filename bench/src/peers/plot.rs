//! Bar charts as SVG text: a group of bars for each label, one bar for each round or class.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const LABEL_WIDTH: f64 = 150.0;
const VALUE_WIDTH: f64 = 90.0;
const BAR_HEIGHT: f64 = 11.0;
const GROUP_GAP: f64 = 9.0;
const TOP: f64 = 34.0;
/// Colours of the bars of a group, told apart by those who see fewer colours, too.
const COLOURS: [&str; 4] = ["#0072b2", "#56b4e9", "#e69f00", "#d55e00"];

/// How long a bar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// By its value.
    Linear,
    /// By its magnitude, for values far apart.
    Logarithmic,
}

/// A chart.
#[derive(Debug, Clone)]
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) axis: Axis,
    /// Names of the bars of a group, if they need any.
    pub(crate) legend: &'a [&'a str],
    /// Labels and values; a value that is not there leaves its place empty.
    pub(crate) groups: Vec<(String, Vec<Option<f64>>)>,
}

impl Chart<'_> {
    /// The picture.
    pub(crate) fn render(&self) -> String {
        let values = || self.groups.iter().flat_map(|(_, values)| values.iter().flatten().copied());
        let (least, most) = values()
            .filter(|value| *value > 0.0)
            .fold((f64::MAX, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
        let bars: f64 =
            self.groups.iter().map(|(_, values)| f64::from(u32::try_from(values.len()).unwrap_or(0))).sum();
        let groups = f64::from(u32::try_from(self.groups.len()).unwrap_or(0));
        let legend_height = if self.legend.is_empty() { 0.0 } else { 20.0 };
        let height = TOP + legend_height + bars * BAR_HEIGHT + groups * GROUP_GAP + 6.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"8\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{}</text>\n",
            escaped(self.title)
        );
        let mut x = LABEL_WIDTH;
        for (name, colour) in self.legend.iter().zip(COLOURS) {
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"28\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" y=\"37\">{}</text>",
                x + 14.0,
                escaped(name)
            );
            x += 130.0;
        }
        let mut y = TOP + legend_height;
        for (label, values) in &self.groups {
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                LABEL_WIDTH - 8.0,
                y + BAR_HEIGHT - 2.0,
                escaped(label)
            );
            for (value, colour) in values.iter().zip(COLOURS.iter().cycle()) {
                if let Some(value) = value {
                    let width = self.length(*value, least, most) * (WIDTH - LABEL_WIDTH - VALUE_WIDTH);
                    let _ = writeln!(
                        svg,
                        "<rect x=\"{LABEL_WIDTH}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                        BAR_HEIGHT - 1.0,
                        LABEL_WIDTH + width + 4.0,
                        y + BAR_HEIGHT - 2.0,
                        figure(*value)
                    );
                }
                y += BAR_HEIGHT;
            }
            y += GROUP_GAP;
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// From 0 to 1.
    fn length(&self, value: f64, least: f64, most: f64) -> f64 {
        match self.axis {
            _ if value <= 0.0 || most <= 0.0 => 0.0,
            Axis::Linear => value / most,
            // The shortest bar is still seen.
            Axis::Logarithmic => (value / (least / 2.0)).ln() / (most / (least / 2.0)).ln(),
        }
    }
}

/// A number with as many digits as a reader uses.
pub(crate) fn figure(value: f64) -> String {
    let digits = match value.abs() {
        size if size.fract() == 0.0 => 0,
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) =
        text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match rest {
        Some(rest) => format!("{sign}{grouped}.{rest}"),
        None => format!("{sign}{grouped}"),
    }
}

/// Text as it may stand in a picture.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_a_reader_uses() {
        let cases = [
            (0.0, "0"),
            (0.034, "0.03"),
            (9.994, "9.99"),
            (12.34, "12.3"),
            (999.4, "999"),
            (1_000.0, "1,000"),
            (-1_234.0, "-1,234"),
            (12_345_678.0, "12,345,678"),
        ];
        for (value, text) in cases {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn the_longest_bar_is_the_largest_value_and_a_missing_one_has_none() {
        let chart = Chart {
            title: "a < b",
            axis: Axis::Linear,
            legend: &[],
            groups: vec![("x".into(), vec![Some(10.0), None]), ("y".into(), vec![Some(5.0), Some(0.0)])],
        };
        let svg = chart.render();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("a &lt; b"));
        let full = WIDTH - LABEL_WIDTH - VALUE_WIDTH;
        assert!(svg.contains(&format!("width=\"{full:.1}\"")));
        assert!(svg.contains(&format!("width=\"{:.1}\"", full / 2.0)));
        assert_eq!(svg.matches("<rect").count(), 4, "the ground and three bars");
    }

    #[test]
    fn a_logarithmic_axis_keeps_the_order_and_shows_the_least() {
        let chart = Chart { title: "", axis: Axis::Logarithmic, legend: &[], groups: Vec::new() };
        let lengths: Vec<f64> =
            [1.0, 10.0, 1_000.0].iter().map(|value| chart.length(*value, 1.0, 1_000.0)).collect();
        assert!(0.0 < lengths[0] && lengths[0] < lengths[1] && lengths[1] < lengths[2]);
        assert!((lengths[2] - 1.0).abs() < 1e-9);
    }
}
