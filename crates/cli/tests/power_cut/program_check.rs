//! The same checks with the real program: doctor, everything sent again, search, doctor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::check::{CheckResult, CrashCase, SEARCH_WORD, SessionWorkload};
use crate::rounds::new_session_args;
use crate::traced_home::{
    MessageLine, fast_folder, program_path, run_with_input, set_environment, to_json_lines,
};

impl CrashCase<'_> {
    /// Restarts the program from the state, sends everything again, and returns what is
    /// wrong.
    pub(crate) fn check_with_program(self) -> CheckResult {
        let folder = fast_folder();
        let (root, work) = (folder.path().join("root"), folder.path().join("work"));
        for made in [&root, &work] {
            std::fs::create_dir(made).map_err(|error| error.to_string())?;
        }
        let written = self.state.write_to(&root);
        written.map_err(|error| error.to_string())?;
        self.check_home(folder.path())
    }

    /// The same for an existing home, which nothing else may use meanwhile.
    pub(crate) fn check_home(self, folder: &Path) -> CheckResult {
        let tl = TlProgram { folder };
        // It may report the remains of an index that was being written.
        tl.run_expecting(&["doctor", "--json"], &[], &[0, 6])?;
        for (id, session) in &self.sent.sessions {
            if session.deleted.is_some() {
                continue;
            }
            match tl.run(&new_session_args(id), &[]) {
                // Created by an import, it has no key.
                Err(failed) if !failed.contains("already exists") => return Err(failed),
                _ => {}
            }
            self.resend(&tl, id, session)?;
        }
        // Something new, so that there is something to index.
        let mut used = self.sent.sessions.iter();
        if let Some((id, _)) = used.find(|(_, session)| session.deleted.is_none()) {
            tl.run(&["append", id, SEARCH_WORD, "--json"], &[])?;
        }
        self.check_search(&tl)?;
        tl.run(&["doctor", "--json"], &[]).map(|_| ())
    }

    fn resend(self, tl: &TlProgram<'_>, id: &str, session: &SessionWorkload) -> CheckResult {
        // Erased messages cannot be sent again.
        let lines: &[MessageLine] = if session.erased.is_empty() {
            &session.lines
        } else {
            &[]
        };
        let output = tl.run(&["append", id, "--json"], &to_json_lines(lines))?;
        let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
        let answers: Vec<Value> = answers.map_while(Result::ok).collect();
        if answers.len() != lines.len() {
            return Err(format!(
                "{} of {} were answered",
                answers.len(),
                lines.len()
            ));
        }
        let answers: BTreeMap<_, _> = answers
            .iter()
            .filter_map(|answer| Some((answer["external_id"].as_str()?, answer)))
            .collect();
        for entry in self
            .acknowledged
            .appended
            .iter()
            .filter(|entry| entry.session == id)
        {
            let Some(answer) = answers.get(entry.external_id.as_str()) else {
                continue;
            };
            if answer["seq"] != entry.seq || answer["digest"] != entry.digest.as_str() {
                return Err(format!("acknowledged: {entry:?}, sent again: {answer}"));
            }
        }
        Ok(())
    }

    fn check_search(self, tl: &TlProgram<'_>) -> CheckResult {
        let args = [
            "search",
            SEARCH_WORD,
            "--mode",
            "text",
            "--limit",
            "1000",
            "--json",
        ];
        let output = tl.run(&args, &[])?;
        let answer: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        let hits = answer["hits"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let found: BTreeSet<(String, String)> = hits
            .map(|hit| (text(&hit["session"]), text(&hit["external_id"])))
            .filter(|(_, external_id)| !external_id.is_empty())
            .collect();
        for (id, session) in &self.sent.sessions {
            if session.deleted.is_some() || !session.erased.is_empty() {
                continue;
            }
            for line in &session.lines {
                if !found.contains(&(id.clone(), line.id.clone())) {
                    return Err(format!("search does not find {} of {id}", line.id));
                }
            }
        }
        Ok(())
    }
}

struct TlProgram<'a> {
    folder: &'a Path,
}

impl TlProgram<'_> {
    /// Runs a command that must succeed.
    fn run(&self, args: &[&str], input: &[u8]) -> Result<Output, String> {
        self.run_expecting(args, input, &[0])
    }

    /// Runs a command that must end with one of these codes.
    fn run_expecting(&self, args: &[&str], input: &[u8], codes: &[i32]) -> Result<Output, String> {
        let mut command = Command::new(program_path());
        command.args(args);
        let home = self.folder.join("root").join("home");
        set_environment(&mut command, self.folder, &home);
        let output = run_with_input(command.stderr(Stdio::piped()), input);
        if output
            .status
            .code()
            .is_some_and(|code| codes.contains(&code))
        {
            return Ok(output);
        }
        let (said, failed) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        Err(format!("tl {args:?}: {}: {failed}{said}", output.status))
    }
}
