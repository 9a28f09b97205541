//! Keys that the person keeps in a file of their own.

use anyhow::Result;
use throughline::llm::Keys;

use crate::places::Places;
use crate::private::read_private;
use crate::report::Refusal;

/// The keys in the person's file; none where there is no file.
pub(crate) fn keys(places: &Places) -> Result<Keys> {
    let path = places.keys();
    let Some(text) = read_private(&path)? else {
        return Ok(Keys::default());
    };
    let shown = path.display().to_string();
    Keys::parse(&text, &shown).map_err(|error| Refusal::invalid(error.to_string()).into())
}
