//! Bar charts of compared numbers.

use crate::rounds::Samples;
use crate::units::Unit;

/// A bar chart with one scale.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) unit: Unit,
    pub(crate) bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) value: f64,
    pub(crate) ours: bool,
}

impl Chart {
    pub(crate) fn new(title: impl Into<String>, unit: Unit) -> Self {
        Self {
            title: title.into(),
            unit,
            bars: Vec::new(),
        }
    }

    pub(crate) fn add_ours(&mut self, label: impl Into<String>, samples: &Samples) {
        self.add_bar(label.into(), samples, true);
    }

    pub(crate) fn add_other(&mut self, label: impl Into<String>, samples: &Samples) {
        self.add_bar(label.into(), samples, false);
    }

    fn add_bar(&mut self, label: String, samples: &Samples, ours: bool) {
        self.bars.push(Bar {
            label,
            value: samples.median(),
            ours,
        });
    }

    /// Returns a bar's length relative to the longest.
    pub(crate) fn share(&self, bar: &Bar) -> f64 {
        let longest = self.bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
        if longest > 0.0 {
            bar.value / longest
        } else {
            0.0
        }
    }

    /// Renders the bars as lines of text; ours are solid.
    pub(crate) fn text_lines(&self) -> Vec<String> {
        let width = self.bars.iter().map(|bar| bar.label.chars().count()).max();
        let width = width.unwrap_or(0);
        self.bars
            .iter()
            .map(|bar| {
                let mark = if bar.ours { "█" } else { "░" };
                let drawn: String = (0..40)
                    .filter(|step| self.share(bar) * 40.0 >= f64::from(*step) + 0.5)
                    .map(|_| mark)
                    .collect();
                let drawn = if drawn.is_empty() { "▏" } else { &drawn };
                let value = self.unit.format(bar.value);
                format!("{:<width$}  {drawn} {value}", bar.label)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_share_one_scale() {
        let mut chart = Chart::new("appends", Unit::Rate);
        chart.add_ours("Throughline", &Samples(vec![400.0]));
        chart.add_other("file", &Samples(vec![100.0]));
        let lines = chart.text_lines();
        assert_eq!(lines[0].matches('█').count(), 40);
        assert_eq!(lines[1].matches('░').count(), 10);
    }
}
