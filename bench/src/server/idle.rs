//! Measures the memory of a `tl serve` process with many idle sessions.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use super::append::{create_session, message_body};
use super::client::{Connection, http_request};
use super::{Bench, BenchReport};
use crate::rounds::Samples;
use crate::table::Row;
use crate::units::{Unit, format_number, to_f64};

const SESSIONS: u64 = 10_000;

pub(super) fn measure(bench: &Bench, tl: Option<&Path>, findings: &mut BenchReport) -> Result<()> {
    let Some(tl) = tl else {
        findings.add_row(Row::not_measured("idle memory", "no --tl given"));
        return Ok(());
    };
    let sessions = SESSIONS / bench.scale;
    let server = ServeProcess::start(tl, &bench.dir().join("idle"), None)?;
    let before = server.resident_bytes()?;
    bench.runtime.block_on(async {
        let mut connection = Connection::open(server.address).await?;
        let body = message_body();
        for _ in 0..sessions {
            let id = create_session(&mut connection).await?;
            let path = format!("/api/sessions/{id}/entries");
            connection.call(&http_request("POST", &path, &body)).await?;
        }
        anyhow::Ok(())
    })?;
    let after = server.resident_bytes()?;
    let name = format!(
        "memory with {} idle sessions",
        format_number(to_f64(sessions))
    );
    let row = Row::new(name, Unit::Bytes, &Samples(vec![after]));
    findings.add_row(row.against("with none", &Samples(vec![before])));
    Ok(())
}

/// A `tl serve` process, killed on drop.
pub(crate) struct ServeProcess {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl ServeProcess {
    /// Serves the store at a URL, or the one in `home`.
    pub(crate) fn start(tl: &Path, home: &Path, store: Option<&str>) -> Result<Self> {
        let mut serve = Command::new(tl);
        if let Some(store) = store {
            serve.args(["--store", store]);
        }
        let mut child = serve
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "off", "--json"])
            .env("THROUGHLINE_HOME", home)
            .stdout(Stdio::piped())
            .spawn()
            .context("starting tl serve")?;
        let out = child.stdout.take().context("tl serve has no output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let started: Value =
            serde_json::from_str(&line).context("tl serve did not print its address")?;
        let url = started["url"].as_str().unwrap_or_default();
        let address = url.trim_start_matches("http://").parse()?;
        Ok(Self { child, address })
    }

    fn resident_bytes(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        let kib: u64 = kib.context("no VmRSS in the status")?.parse()?;
        Ok(to_f64(kib * 1024))
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
