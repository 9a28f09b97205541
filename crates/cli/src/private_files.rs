//! Files accessible to the user only.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Result;
use throughline::llm::check_key_file_mode;

use crate::error_report::UserError;

/// Returns options that create a file accessible to the user only.
pub(crate) fn private_file_options() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Reads a file with secrets; `None` if it does not exist. Fails if other users can read it.
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
