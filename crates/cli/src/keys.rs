//! Loads the user's API keys from keys.toml.

use anyhow::Result;
use throughline::llm::ApiKeys;

use crate::error_report::UserError;
use crate::paths::Paths;
use crate::private_files::read_private;

/// Loads the keys; none if there is no file.
pub(crate) fn load_keys(paths: &Paths) -> Result<ApiKeys> {
    let path = paths.keys_file();
    let Some(text) = read_private(&path)? else {
        return Ok(ApiKeys::default());
    };
    let shown = path.display().to_string();
    ApiKeys::parse(&text, &shown).map_err(|error| UserError::invalid(error.to_string()).into())
}
