//! `tl completions`: prints shell completion scripts.

use anyhow::Result;
use clap_complete::Shell;

/// Print a shell completion script
///
/// For bash: tl completions bash > ~/.local/share/bash-completion/completions/tl
#[derive(clap::Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command_line(), "tl", &mut script);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &script)?;
    Ok(())
}
