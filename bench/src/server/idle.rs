//! Memory with many sessions at rest, in a server of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use super::append::{message, session};
use super::client::{Connection, request};
use super::{Bench, Findings};
use crate::figure::{Unit, digits, float};
use crate::rounds::Samples;
use crate::table::Row;

const SESSIONS: u64 = 10_000;

pub(super) fn measure(bench: &Bench, tl: Option<&Path>, findings: &mut Findings) -> Result<()> {
    let Some(tl) = tl else {
        findings.row(Row::missing("memory at rest", "no `tl` was named"));
        return Ok(());
    };
    let sessions = SESSIONS / bench.scale;
    let server = Process::start(tl, &bench.dir().join("idle"), None)?;
    let before = server.resident()?;
    bench.runtime.block_on(async {
        let mut connection = Connection::open(server.address).await?;
        let body = message();
        for _ in 0..sessions {
            let id = session(&mut connection).await?;
            let path = format!("/api/sessions/{id}/entries");
            connection.call(&request("POST", &path, &body)).await?;
        }
        anyhow::Ok(())
    })?;
    let after = server.resident()?;
    let name = format!("memory with {} sessions at rest", digits(float(sessions)));
    let row = Row::new(name, Unit::Bytes, &Samples(vec![after]));
    findings.row(row.against("with none", &Samples(vec![before])));
    Ok(())
}

/// `tl serve`, until this is dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Process {
    /// Serves the store at an address, or the one in `home`.
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
        let told: Value = serde_json::from_str(&line).context("tl serve did not say where")?;
        let url = told["url"].as_str().unwrap_or_default();
        let address = url.trim_start_matches("http://").parse()?;
        Ok(Self { child, address })
    }

    fn resident(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        let kib: u64 = kib.context("no VmRSS in the status")?.parse()?;
        Ok(float(kib * 1024))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
