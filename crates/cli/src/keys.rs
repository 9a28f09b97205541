//! Keys that the person keeps in a file of their own.

use anyhow::Result;
use throughline::llm::ApiKeys;

use crate::error_report::UserError;
use crate::paths::Paths;
use crate::private_files::read_private;

/// The keys in the person's file; none where there is no file.
pub(crate) fn load_keys(places: &Paths) -> Result<ApiKeys> {
    let path = places.keys_file();
    let Some(text) = read_private(&path)? else {
        return Ok(ApiKeys::default());
    };
    let shown = path.display().to_string();
    ApiKeys::parse(&text, &shown).map_err(|error| UserError::invalid(error.to_string()).into())
}
