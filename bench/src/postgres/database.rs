//! A temporary database for the PostgreSQL benchmarks, accessed through psql and pgbench.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::sample;

/// A database on a server, dropped with this value.
pub(super) struct BenchDatabase {
    server: String,
    name: String,
    url: String,
    programs: PathBuf,
}

impl BenchDatabase {
    pub(super) fn new(server: &str, programs: &Path) -> Result<Self> {
        let name = format!("tl_bench_{}", std::process::id());
        let at = server.rfind('/').context("the URL has no database")?;
        let made = Self {
            server: server.to_owned(),
            url: format!("{}/{name}", &server[..at]),
            name,
            programs: programs.to_owned(),
        };
        made.run_psql(&made.server, &format!("CREATE DATABASE {}", made.name))?;
        made.run_psql(
            &made.url,
            "CREATE TABLE bare (number bigserial PRIMARY KEY, body text NOT NULL)",
        )?;
        Ok(made)
    }

    /// Returns the URL of the database.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Describes the server's version and durability settings.
    pub(super) fn describe_settings(&self) -> Result<String> {
        let ask = "SELECT current_setting('server_version') || '|' || current_setting('fsync')
            || '|' || current_setting('synchronous_commit') || '|'
            || current_setting('shared_buffers')";
        let output = self.run_psql(&self.url, ask)?;
        let output: Vec<&str> = output.trim().split('|').collect();
        let [version, fsync, synchronous, buffers] = output[..] else {
            anyhow::bail!("psql printed {output:?}");
        };
        Ok(format!(
            "PostgreSQL {version} with fsync {fsync}, synchronous_commit {synchronous} and \
             shared_buffers {buffers}."
        ))
    }

    /// Measures plain SQL inserts per second over that many connections.
    pub(super) fn measure_bare_inserts(
        &self,
        folder: &Path,
        connections: usize,
        slice: Duration,
    ) -> Result<f64> {
        let script = folder.join("bare.sql");
        std::fs::write(&script, "INSERT INTO bare (body) VALUES (:body);\n")?;
        let out = Command::new(self.programs.join("pgbench"))
            .args(["--no-vacuum", "--protocol=prepared", "--jobs=2"])
            .arg(format!("--client={connections}"))
            .arg(format!("--time={}", slice.as_secs().max(1)))
            .arg(format!("--define=body={}", sample::message_text()))
            .arg("--file")
            .arg(&script)
            .arg(&self.url)
            .output()
            .context("starting pgbench")?;
        let stdout = String::from_utf8_lossy(&out.stdout);
        let rate = stdout
            .lines()
            .find_map(|line| line.strip_prefix("tps = "))
            .and_then(|line| line.split_whitespace().next())
            .and_then(|rate| rate.parse().ok());
        rate.with_context(|| {
            let error = String::from_utf8_lossy(&out.stderr);
            format!("pgbench printed {stdout:?} and {error:?}")
        })
    }

    fn run_psql(&self, url: &str, sql: &str) -> Result<String> {
        let out = Command::new(self.programs.join("psql"))
            .args([
                url,
                "--no-psqlrc",
                "-At",
                "-v",
                "ON_ERROR_STOP=1",
                "-c",
                sql,
            ])
            .output()
            .context("starting psql")?;
        let error = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "psql failed: {error}");
        Ok(String::from_utf8(out.stdout)?)
    }
}

impl Drop for BenchDatabase {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        if let Err(error) = self.run_psql(&self.server, &drop) {
            eprintln!("could not drop the database {}: {error:#}", self.name);
        }
    }
}
