//! Files for the person's eyes only.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Result;
use throughline::llm::check_key_file_mode;

use crate::error_report::UserError;

/// Options that create a file for the person's eyes only.
pub(crate) fn private_file_options() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// The text of a file that has secrets in it; none where there is no file. Refused where
/// others can read it.
pub(crate) fn read_private(path: &Path) -> Result<Option<String>> {
    let shown = path.display().to_string();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(UserError::invalid(format!("{shown} cannot be read: {error}")).into());
        }
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path)?.permissions().mode();
        check_key_file_mode(mode, &shown).map_err(|error| UserError::invalid(error.to_string()))?;
    }
    Ok(Some(text))
}
