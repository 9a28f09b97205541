//! The user's access tokens for servers, stored in tokens.toml, one line per server:
//! `"https://tl.example.org" = "tl_…"`.
//!
//! Invariant: no error quotes the file, because any part of it may be a token.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use throughline::{BearerToken, ServerUrl};

use crate::error_report::UserError;
use crate::paths::{Paths, create_private_folder, write_atomically};
use crate::private_files::read_private;

/// The environment variable with a token for the store in use; it overrides the file.
pub(crate) const TOKEN_VARIABLE: &str = "TL_TOKEN";

/// The tokens of a file.
#[derive(Debug)]
pub(crate) struct Logins {
    path: PathBuf,
    tokens: BTreeMap<String, BearerToken>,
}

impl Logins {
    /// Reads the user's file; empty if there is none.
    pub(crate) fn read(paths: &Paths) -> Result<Self> {
        let path = paths.config_folder().join("tokens.toml");
        let mut tokens = BTreeMap::new();
        let text = read_private(&path)?;
        for (at, line) in text.iter().flat_map(|text| text.lines().enumerate()) {
            let refused = || {
                UserError::invalid(format!(
                    "{}, line {}: write a server's address, an equals sign and its token, both \
                     in quotes",
                    path.display(),
                    at + 1
                ))
            };
            // Parsed line by line, so that an error can name the line without quoting it.
            let line: toml::Table = line.parse().map_err(|_| refused())?;
            for (server, token) in line {
                let server: ServerUrl = server.parse().map_err(|_| refused())?;
                let token = token.as_str().and_then(BearerToken::new);
                let token = token.ok_or_else(refused)?;
                if tokens.insert(server.to_string(), token).is_some() {
                    return Err(refused().into());
                }
            }
        }
        Ok(Self { path, tokens })
    }

    /// Saves the token for a server, replacing an earlier one.
    pub(crate) fn save(mut self, server: &ServerUrl, token: BearerToken) -> Result<()> {
        self.tokens.insert(server.to_string(), token);
        self.write()
    }

    /// Removes the token for a server; returns whether there was one.
    pub(crate) fn forget(mut self, server: &ServerUrl) -> Result<bool> {
        let known = self.tokens.remove(&server.to_string()).is_some();
        if known {
            self.write()?;
        }
        Ok(known)
    }

    fn write(&self) -> Result<()> {
        let lines = self.tokens.iter().map(|(server, token)| {
            let token = toml::Value::from(token.expose());
            format!("{} = {token}\n", toml::Value::from(server.as_str()))
        });
        let text: String = lines.collect();
        let written = self
            .path
            .parent()
            .map_or(Ok(()), create_private_folder)
            // `write_atomically` creates files accessible to the user only.
            .and_then(|()| write_atomically(&self.path, text.as_bytes()));
        written.with_context(|| format!("{} cannot be written", self.path.display()))
    }
}

/// Returns the token for a server: from the environment, or else from the user's file.
pub(crate) fn token_for(paths: &Paths, server: &ServerUrl) -> Result<Option<BearerToken>> {
    if let Some(text) = paths.variable(TOKEN_VARIABLE) {
        let token = BearerToken::new(text);
        return token.map(Some).ok_or_else(|| {
            UserError::invalid(format!("${TOKEN_VARIABLE} is not a valid token")).into()
        });
    }
    let mut logins = Logins::read(paths)?;
    Ok(logins.tokens.remove(&server.to_string()))
}
