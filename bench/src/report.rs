//! The report of a benchmark, written to the terminal, a Markdown file and a chart.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::chart::Chart;
use crate::machine::Machine;
use crate::table::{Row, Table};
use crate::{markdown, svg};

/// How much to measure, and where to write the results.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// Measure roughly, in a fraction of the time
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write the results as a Markdown section to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Draw the chart into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Where to put the measured files: on the disk that matters
    #[arg(long, value_name = "DIR", default_value = "target")]
    dir: PathBuf,
}

impl OutputArgs {
    /// Creates an empty folder for the measured files.
    pub(crate) fn create_temp_folder(&self) -> Result<tempfile::TempDir> {
        fs::create_dir_all(&self.dir)
            .with_context(|| format!("creating {}", self.dir.display()))?;
        let named = tempfile::Builder::new()
            .prefix("throughline-bench-")
            .tempdir_in(&self.dir);
        Ok(named?)
    }
}

/// The results of a benchmark.
#[derive(Default)]
pub(crate) struct BenchReport {
    table: Table,
    charts: Vec<Chart>,
    picture: Option<String>,
}

impl BenchReport {
    pub(crate) fn add_row(&mut self, row: Row) {
        eprintln!("{}", row.cells().join("  "));
        self.table.0.push(row);
    }

    pub(crate) fn add_chart(&mut self, chart: Chart) {
        self.charts.push(chart);
    }

    /// Sets a picture to use instead of the charts.
    pub(crate) fn set_picture(&mut self, svg: String) {
        self.picture = Some(svg);
    }

    /// Writes the report, with this title, command and notes.
    pub(crate) fn publish(
        self,
        output: &OutputArgs,
        machine: &Machine,
        title: &str,
        command: &str,
        notes: &[String],
    ) -> Result<()> {
        println!("{}", self.table);
        for chart in &self.charts {
            println!("{}\n{}\n", chart.title, chart.text_lines().join("\n"));
        }
        let write = |file: &Path, text: String| {
            fs::write(file, text).with_context(|| format!("writing {}", file.display()))
        };
        if let Some(file) = &output.svg {
            let drawn = self
                .picture
                .unwrap_or_else(|| svg::render_bars(&self.charts));
            write(file, drawn)?;
        }
        if let Some(file) = &output.markdown {
            let quick = if output.quick { " --quick" } else { "" };
            let picture = output.svg.as_deref().and_then(Path::file_name);
            let section = markdown::render_section(
                title,
                &format!("cargo xtask bench {command}{quick}"),
                machine,
                notes,
                &self.table,
                &self.charts,
                picture.map(|name| name.to_string_lossy()).as_deref(),
            );
            write(file, section)?;
        }
        Ok(())
    }
}
