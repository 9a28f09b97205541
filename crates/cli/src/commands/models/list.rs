//! `tl models list`: lists the semantic models and which is in use.

use anyhow::Result;
use serde_json::json;
use throughline::recall::{STATIC_BYTES, STATIC_DIGEST};

use super::{INFO_FILE, ModelInfo, format_megabytes, short_digest};
use crate::app::App;
use crate::markdown::sanitize;
use crate::semantic::{
    EXAMPLE_MODEL, MINILM, STATIC, SemanticModel, connect_embeddings, minilm_folder,
};

/// List the models and which one is in use
#[derive(clap::Args, Debug)]
pub(super) struct ListArgs {}

/// Whether the contextual model is installed.
enum InstallState {
    Missing,
    Installed(ModelInfo),
    Damaged(String),
}

pub(super) fn run(app: &App) -> Result<()> {
    let value = app.config.semantic();
    let semantic: SemanticModel = value.value.parse().map_err(anyhow::Error::msg)?;
    let folder = minilm_folder(&app.paths);
    let added = install_state(app)?;
    let spec = match &semantic {
        SemanticModel::Embeddings(spec) => Some(spec),
        SemanticModel::Static | SemanticModel::Minilm => None,
    };
    let at = spec.map(|spec| connect_embeddings(&app.paths, spec));
    if app.ui.json {
        let minilm = match &added {
            InstallState::Missing => json!({"installed": false}),
            InstallState::Installed(about) => json!({
                "installed": true,
                "folder": folder,
                "bytes": about.bytes,
                "digest": about.digest,
                "from": about.from,
            }),
            InstallState::Damaged(why) => {
                json!({"installed": false, "folder": folder, "error": why})
            }
        };
        let embeddings = match &at {
            None => json!({"configured": false}),
            Some(Ok(at)) => json!({
                "configured": true,
                "provider": at.provider,
                "model": at.model,
                "address": at.base_url,
                "key_from": at.key_source.as_ref().filter(|_| at.key.is_some()),
            }),
            Some(Err(error)) => json!({"configured": false, "error": error.to_string()}),
        };
        return Ok(app.ui.json(&json!({
            "in_use": value.value,
            "origin": value.origin.to_string(),
            "static": {"bytes": STATIC_BYTES, "digest": STATIC_DIGEST},
            "minilm": minilm,
            "embeddings": embeddings,
        }))?);
    }
    let row = |name: &str, in_use: bool, lines: &[String]| -> Result<()> {
        let mark = if in_use { "*" } else { " " };
        for (at, line) in lines.iter().enumerate() {
            let head = if at == 0 {
                format!("{mark} {}", app.ui.bold(&format!("{name:<10}")))
            } else {
                " ".repeat(12)
            };
            app.ui.data(format_args!("{head}  {}", sanitize(line)))?;
        }
        Ok(())
    };
    let size = |bytes: u64, digest: &str| {
        format!(
            "{}, digest {}",
            format_megabytes(bytes),
            short_digest(digest)
        )
    };
    row(
        STATIC,
        matches!(semantic, SemanticModel::Static),
        &[
            "built in; finds and ranks first".to_owned(),
            size(STATIC_BYTES, STATIC_DIGEST),
        ],
    )?;
    let lines = match &added {
        InstallState::Missing => vec![
            "not installed; reranks the top hits and finds more".to_owned(),
            "`tl models add minilm` downloads it (91 MB)".to_owned(),
        ],
        InstallState::Installed(about) => vec![
            format!("in {}, from {}", folder.display(), about.from),
            size(about.bytes, &about.digest),
        ],
        InstallState::Damaged(why) => vec![
            format!("in {}, damaged: {why}", folder.display()),
            "run `tl models remove minilm`, then `tl models add minilm`".to_owned(),
        ],
    };
    row(MINILM, matches!(semantic, SemanticModel::Minilm), &lines)?;
    let lines = match &at {
        None => vec![
            "not configured; would send queries and results to the provider".to_owned(),
            format!("`semantic = \"{EXAMPLE_MODEL}\"` in your config.toml, and OPENAI_API_KEY"),
        ],
        Some(Ok(at)) => vec![
            format!("{}/{} at {}", at.provider, at.model, at.base_url),
            "queries and results are sent to the provider".to_owned(),
        ],
        Some(Err(error)) => vec![format!("{}: {error}", value.value)],
    };
    row("embeddings", at.is_some(), &lines)?;
    app.ui.status(format_args!(
        "\nsemantic = {}  [{}]",
        value.value, value.origin
    ));
    Ok(())
}

fn install_state(app: &App) -> Result<InstallState> {
    let folder = minilm_folder(&app.paths);
    if !folder.try_exists()? {
        return Ok(InstallState::Missing);
    }
    let read = std::fs::read(folder.join(INFO_FILE)).map_err(anyhow::Error::from);
    let about = read.and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
    Ok(match about {
        Ok(about) => InstallState::Installed(about),
        Err(error) => InstallState::Damaged(format!("{INFO_FILE} cannot be read: {error}")),
    })
}
