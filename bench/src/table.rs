//! The result table: one row per comparison.

use std::fmt;

use crate::rounds::Samples;
use crate::units::{Unit, format_number};

/// The target for a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(least) => ratio >= least,
            Self::AtMost(most) => ratio <= most,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

/// One comparison, or the reason why it was not made.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What was measured.
    pub(crate) name: String,
    /// What it is compared with.
    pub(crate) against: String,
    unit: Unit,
    ours: Samples,
    baseline: Samples,
    target: Option<Target>,
    not_measured: Option<String>,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, unit: Unit, ours: &Samples) -> Self {
        Self {
            name: name.into(),
            against: String::new(),
            unit,
            ours: ours.clone(),
            baseline: Samples::default(),
            target: None,
            not_measured: None,
        }
    }

    #[must_use]
    pub(crate) fn against(mut self, what: impl Into<String>, baseline: &Samples) -> Self {
        self.against = what.into();
        self.baseline = baseline.clone();
        self
    }

    #[must_use]
    pub(crate) fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    /// Makes the row of a comparison that could not be made.
    pub(crate) fn not_measured(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            not_measured: Some(why.into()),
            ..Self::new(name, Unit::Number, &Samples::default())
        }
    }

    /// Whether the target was met; `None` without a target or a ratio.
    pub(crate) fn passes(&self) -> Option<bool> {
        let ratio = self.ratio()?;
        self.target.map(|target| target.is_met(ratio))
    }

    fn ratio(&self) -> Option<f64> {
        let ratio = self.ours.ratios(&self.baseline).median();
        ratio.is_finite().then_some(ratio)
    }

    /// Returns the row's cells, in the order of [`HEADINGS`].
    pub(crate) fn cells(&self) -> [String; 7] {
        let shown = |samples: &Samples| match samples.0.len() {
            0 => String::new(),
            _ => self.unit.format(samples.median()),
        };
        let ratios = self.ours.ratios(&self.baseline);
        let ratio = match (self.ratio(), ratios.0.len()) {
            (None, _) => String::new(),
            (Some(ratio), 1) => format_number(ratio),
            (Some(ratio), _) => format!(
                "{} ({}–{})",
                format_number(ratio),
                format_number(ratios.min()),
                format_number(ratios.max())
            ),
        };
        let result = match (&self.not_measured, self.passes()) {
            (Some(why), _) => format!("not measured: {why}"),
            (None, Some(true)) => "met".to_owned(),
            (None, Some(false)) => "missed".to_owned(),
            (None, None) => String::new(),
        };
        [
            self.name.clone(),
            shown(&self.ours),
            self.against.clone(),
            shown(&self.baseline),
            ratio,
            self.target
                .map(|target| target.to_string())
                .unwrap_or_default(),
            result,
        ]
    }
}

/// The column headings.
pub(crate) const HEADINGS: [&str; 7] = [
    "measure",
    "Throughline",
    "against",
    "that",
    "ratio (range)",
    "target",
    "result",
];

/// The rows, in the order they were measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(pub(crate) Vec<Row>);

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![HEADINGS.map(str::to_owned)];
        lines.extend(self.0.iter().map(Row::cells));
        let width = |column: usize| {
            let widths = lines.iter().map(|cells| cells[column].chars().count());
            widths.max().unwrap_or(0)
        };
        for cells in &lines {
            let padded: Vec<_> = cells
                .iter()
                .enumerate()
                .map(|(column, cell)| format!("{cell:<width$}", width = width(column)))
                .collect();
            writeln!(f, "{}", padded.join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: f64) -> Row {
        Row::new("append", Unit::Rate, &Samples(vec![ours]))
            .against("a file", &Samples(vec![100.0]))
            .target(Target::AtLeast(0.9))
    }

    #[test]
    fn a_target_is_held_against_the_ratio() {
        assert_eq!(row(95.0).passes(), Some(true));
        assert_eq!(row(80.0).passes(), Some(false));
        assert_eq!(row(80.0).cells()[6], "missed");
    }

    #[test]
    fn what_could_not_be_measured_says_so_and_has_no_number() {
        let row = Row::not_measured("append", "pip failed");
        assert_eq!(row.passes(), None);
        assert_eq!(row.cells()[6], "not measured: pip failed");
    }
}
