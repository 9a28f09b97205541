//! Keys that the person keeps in a file of their own.

use anyhow::Result;
use throughline::llm::{Keys, check_mode};

use crate::places::Places;
use crate::report::Refusal;

/// The keys in the person's file; none where there is no file.
pub(crate) fn keys(places: &Places) -> Result<Keys> {
    let path = places.keys();
    let shown = path.display().to_string();
    let refused = |why: String| Refusal::invalid(format!("{shown} {why}"));
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Keys::default()),
        Err(error) => return Err(refused(format!("cannot be read: {error}")).into()),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path)?.permissions().mode();
        check_mode(mode, &shown).map_err(|error| Refusal::invalid(error.to_string()))?;
    }
    Keys::parse(&text, &shown).map_err(|error| Refusal::invalid(error.to_string()).into())
}
