//! `cargo xtask torture`: runs the randomized tests for longer and with a new seed.
//!
//! Each of them is also in the test suite, where it is short and uses a fixed seed. Here it
//! gets a time and a seed through two variables (read by `conformance::torture` in
//! `throughline-store`). A failure ends the run and prints the seed that reproduces it.

use std::hash::{BuildHasher as _, RandomState};

use anyhow::{Context as _, Result, bail};

use crate::postgres::PostgresServers;
use crate::process::{self, cargo};

/// A test that runs for a given time.
struct TortureTest {
    /// The name for `--only`.
    name: &'static str,
    package: &'static str,
    /// The file or folder in the package's `tests`.
    target: &'static str,
    /// The test's full name.
    test: &'static str,
    /// Whether it needs PostgreSQL.
    postgres: bool,
}

/// All torture tests. To add one, add a line; the test uses `TortureBudget::from_env`.
const TORTURE_TESTS: &[TortureTest] = &[
    TortureTest {
        name: "kill",
        package: "throughline-sqlite",
        target: "kill",
        test: "what_was_acknowledged_survives_a_kill_at_any_moment",
        postgres: false,
    },
    TortureTest {
        name: "simulation",
        package: "throughline",
        target: "simulation",
        test: "whatever_happens_every_question_has_one_answer_in_time",
        postgres: false,
    },
    TortureTest {
        name: "history-sqlite",
        package: "throughline-cli",
        target: "history",
        test: "servers_over_one_sqlite_file_give_one_history",
        postgres: false,
    },
    TortureTest {
        name: "history-postgres",
        package: "throughline-cli",
        target: "history",
        test: "servers_over_one_postgres_database_give_one_history",
        postgres: true,
    },
    power_cut("power-cut-appends", "appends_survive_kills_and_a_power_cut"),
    power_cut(
        "power-cut-index",
        "the_index_survives_kills_and_a_power_cut",
    ),
    power_cut(
        "power-cut-lifecycle",
        "imports_compactions_and_deletions_survive_kills_and_a_power_cut",
    ),
    power_cut(
        "power-cut-http",
        "appends_over_http_survive_kills_and_a_power_cut",
    ),
    power_cut(
        "faults-commands",
        "faults::commands_whose_calls_fail_acknowledge_nothing_wrong",
    ),
    power_cut(
        "faults-server",
        "faults::a_server_whose_calls_fail_recovers",
    ),
];

/// A test that records the real program and simulates power cuts or failing calls.
const fn power_cut(name: &'static str, test: &'static str) -> TortureTest {
    TortureTest {
        name,
        package: "throughline-cli",
        target: "power_cut",
        test,
        postgres: false,
    }
}

/// Run the randomized tests for longer
#[derive(clap::Args, Debug)]
pub(crate) struct TortureArgs {
    /// Total minutes, shared by the tests
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,
    /// The seed of a run to reproduce [default: random]
    #[arg(long)]
    seed: Option<u64>,
    /// Run only this test (may be repeated)
    #[arg(long, value_name = "PART", value_parser = test_names())]
    only: Vec<String>,
}

fn test_names() -> clap::builder::PossibleValuesParser {
    TORTURE_TESTS
        .iter()
        .map(|part| part.name)
        .collect::<Vec<_>>()
        .into()
}

pub(crate) fn run(args: &TortureArgs) -> Result<()> {
    let is_chosen = |part: &&TortureTest| {
        args.only.is_empty() || args.only.iter().any(|only| only == part.name)
    };
    let parts: Vec<_> = TORTURE_TESTS.iter().filter(is_chosen).collect();
    let seconds = args.minutes * 60 / parts.len() as u64;
    if seconds == 0 {
        bail!(
            "not enough time for {} tests; use more --minutes",
            parts.len()
        );
    }
    // A new hasher is keyed with system randomness.
    let seed = args
        .seed
        .unwrap_or_else(|| RandomState::new().hash_one(0) >> 16);
    eprintln!("Seed {seed}; {seconds} s for each of {} tests", parts.len());
    crate::faketime::ensure_installed()?;
    let needs_postgres = parts.iter().any(|part| part.postgres);
    let servers = needs_postgres
        .then(PostgresServers::find_or_start)
        .transpose()?;
    for part in parts {
        let mut test = cargo();
        test.args(["test", "--quiet", "--all-features"])
            .args(["--package", part.package, "--test", part.target])
            .args(["--", "--exact", part.test, "--nocapture"])
            .env("TL_TORTURE_SECONDS", seconds.to_string())
            .env("TL_TORTURE_SEED", seed.to_string());
        if let Some(servers) = servers.as_ref().filter(|_| part.postgres) {
            servers.set_env(&mut test);
        }
        process::run(&mut test).with_context(|| {
            format!(
                "reproduce it with `cargo xtask torture --only {} --minutes {} --seed {seed}`",
                part.name, args.minutes
            )
        })?;
    }
    eprintln!("\nAll tests passed with seed {seed}");
    Ok(())
}
