//! Charts as a picture: bars on a transparent ground, legible on light and dark pages.

use std::fmt::Write as _;

use crate::chart::Chart;

const WIDTH: f64 = 760.0;
const LABELS: f64 = 250.0;
const BAR: f64 = 18.0;
const LINE: f64 = 24.0;
/// Room for the number after the longest bar.
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

/// The charts, one below the other.
pub(crate) fn draw(charts: &[Chart]) -> String {
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
                escape(&chart.unit.show(bar.value)),
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
