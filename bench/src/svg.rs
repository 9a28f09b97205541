//! Renders charts as SVG: bars on a transparent background, legible on light and dark pages.

use std::fmt::Write as _;

use crate::chart::Chart;

const WIDTH: f64 = 760.0;
const LABELS: f64 = 250.0;
const BAR: f64 = 18.0;
const LINE: f64 = 24.0;
/// Space for the number after the longest bar.
const NUMBERS: f64 = 100.0;

const STYLE: &str = "<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600 }
  .ours { fill: #0969da }
  .other { fill: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .ours { fill: #4493f8 }
    .other { fill: #6e7681 }
  }
</style>";

/// Renders the charts, one below the other.
pub(crate) fn render_bars(charts: &[Chart]) -> String {
    let mut drawn = String::new();
    let mut y = 8.0;
    for chart in charts {
        y += LINE;
        let _ = writeln!(
            drawn,
            "<text class=\"title\" x=\"8\" y=\"{y}\">{}</text>",
            escape(&chart.title)
        );
        y += 10.0;
        for bar in &chart.bars {
            let class = if bar.ours { "ours" } else { "other" };
            let length = (chart.share(bar) * (WIDTH - LABELS - NUMBERS)).max(1.0);
            let text = y + 14.0;
            let _ = writeln!(
                drawn,
                "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{}</text>\
                 <rect class=\"{class}\" x=\"{LABELS}\" y=\"{y}\" width=\"{length:.1}\" height=\"{BAR}\" rx=\"2\"/>\
                 <text x=\"{:.1}\" y=\"{text}\">{}</text>",
                LABELS - 8.0,
                escape(&bar.label),
                LABELS + length + 6.0,
                escape(&chart.unit.format(bar.value)),
            );
            y += LINE;
        }
        y += 12.0;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{y}\" \
         viewBox=\"0 0 {WIDTH} {y}\" role=\"img\">\n{STYLE}\n{drawn}</svg>\n"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// One line of a plot.
pub(crate) struct Line {
    name: String,
    points: Vec<f64>,
}

impl Line {
    pub(crate) fn new(name: &str, points: &[f64]) -> Self {
        Self {
            name: name.to_owned(),
            points: points.to_vec(),
        }
    }
}

const COLORS: [&str; 7] = [
    "#8c959f", "#0969da", "#1a7f37", "#9a6700", "#cf222e", "#8250df", "#bf3989",
];

/// Renders lines over time on a logarithmic scale, so that unbounded growth does not hide the
/// rest.
pub(crate) fn render_lines(title: &str, across: &str, lines: &[Line]) -> String {
    const LEFT: f64 = 64.0;
    const TOP: f64 = 40.0;
    const WIDE: f64 = 540.0;
    const HIGH: f64 = 320.0;
    let values = || lines.iter().flat_map(|line| line.points.iter().copied());
    let most = values().fold(10.0, f64::max).log10().ceil();
    let least = values().fold(f64::MAX, f64::min).max(1.0).log10().floor();
    let y = |value: f64| TOP + HIGH * (most - value.max(1.0).log10()) / (most - least).max(1.0);
    let mut drawn = format!(
        "<text class=\"title\" x=\"8\" y=\"24\">{}</text>\n",
        escape(title)
    );
    let mut power = least;
    while power <= most {
        let (value, at) = (10_f64.powf(power), y(10_f64.powf(power)));
        let _ = writeln!(
            drawn,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#8c959f\" stroke-width=\"0.5\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.0}</text>",
            LEFT + WIDE,
            LEFT - 6.0,
            at + 4.0,
        );
        power += 1.0;
    }
    for (index, line) in lines.iter().enumerate() {
        let color = COLORS[index % COLORS.len()];
        let step = WIDE / crate::units::to_f64(line.points.len().max(2) as u64 - 1);
        let mut x = LEFT;
        let mut points = String::new();
        for value in &line.points {
            let _ = write!(points, "{x:.1},{:.1} ", y(*value));
            x += step;
        }
        let label = TOP + 14.0 + 22.0 * crate::units::to_f64(index as u64);
        let _ = writeln!(
            drawn,
            "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\" points=\"{}\"/>\
             <rect x=\"{}\" y=\"{}\" width=\"14\" height=\"4\" fill=\"{color}\"/>\
             <text x=\"{}\" y=\"{label}\">{}</text>",
            points.trim_end(),
            LEFT + WIDE + 16.0,
            label - 6.0,
            LEFT + WIDE + 36.0,
            escape(&line.name),
        );
    }
    let bottom = TOP + HIGH + 24.0;
    let _ = writeln!(
        drawn,
        "<text x=\"{}\" y=\"{bottom}\" text-anchor=\"middle\">{}</text>",
        LEFT + WIDE / 2.0,
        escape(across)
    );
    let height = bottom + 16.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n{STYLE}\n{drawn}</svg>\n"
    )
}
