//! Keeps what is typed while an answer comes from being shown in the middle of it.
//!
//! Nothing is lost: what was typed stands at the next prompt.

/// A terminal that shows only what the program writes, until this is dropped.
pub(crate) struct EchoGuard {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

#[cfg(unix)]
impl EchoGuard {
    pub(crate) fn begin() -> Self {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let stdin = std::io::stdin();
        // What is no terminal shows nothing anyway.
        let before = tcgetattr(&stdin).ok();
        if let Some(mut quiet) = before.clone() {
            quiet.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(&stdin, OptionalActions::Now, &quiet);
        }
        Self { before }
    }
}

#[cfg(unix)]
impl Drop for EchoGuard {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

#[cfg(not(unix))]
impl EchoGuard {
    pub(crate) fn begin() -> Self {
        Self {}
    }
}
