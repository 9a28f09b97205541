//! Development tasks of the workspace: `cargo xtask test`, `cargo xtask bench`, `cargo xtask
//! docs`.

mod bench;
mod browser;
mod distill;
mod docs;
mod faketime;
mod fuzz;
mod openapi;
mod picture;
mod postgres;
mod process;
mod test;
mod tools;
mod torture;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Development tasks of the workspace
#[derive(Parser, Debug)]
#[command(name = "cargo xtask")]
enum Task {
    /// Run all checks: format, lints, docs, tests and doctests
    Test(test::TestArgs),
    /// Run the randomized tests for longer: `cargo xtask torture --minutes 10`
    Torture(torture::TortureArgs),
    /// Run a benchmark: `cargo xtask bench store`
    Bench(bench::BenchArgs),
    /// Run the fuzz targets for longer than the test suite does
    Fuzz(fuzz::FuzzArgs),
    /// Build the semantic models
    Distill(distill::DistillArgs),
    /// Draw the README's pictures from real runs
    Picture(picture::PictureArgs),
    /// Update the generated references in docs/reference
    Docs,
    /// Build the documentation as a book, in target/book
    Book,
    /// Write man pages and shell completions to target/package
    Man,
}

fn main() -> Result<ExitCode> {
    match Task::parse() {
        Task::Test(args) => test::run(&args)?,
        Task::Torture(args) => torture::run(&args)?,
        Task::Bench(args) => bench::run(&args)?,
        Task::Fuzz(args) => fuzz::run(&args)?,
        Task::Distill(args) => distill::run(&args)?,
        Task::Picture(args) => picture::run(&args)?,
        Task::Docs => docs::update_references()?,
        Task::Book => docs::build_book()?,
        Task::Man => docs::write_man_pages()?,
    }
    Ok(ExitCode::SUCCESS)
}
