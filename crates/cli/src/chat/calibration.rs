//! How models count tokens, as learned from what they reported, from chat to chat.

use throughline::context::Calibration;

use super::Chat;
use crate::paths::{create_private_folder, write_atomically};

const CALIBRATION_FILE: &str = "calibration.json";

impl Chat<'_> {
    /// Takes up what was learned earlier.
    pub(super) fn load_calibration(&self) {
        let path = self.app.paths.state_file(CALIBRATION_FILE);
        let Ok(text) = std::fs::read_to_string(&path) else {
            // Nothing was learned yet.
            return;
        };
        match serde_json::from_str::<Calibration>(&text) {
            Ok(learned) => self.tl.set_calibration(learned),
            Err(error) => self.app.ui.warn(format_args!(
                "{} cannot be read and is made anew: {error}",
                path.display()
            )),
        }
    }

    /// Keeps what was learned.
    pub(super) fn save_calibration(&self) {
        let learned = self.tl.calibration();
        if learned == Calibration::default() {
            return;
        }
        let path = self.app.paths.state_file(CALIBRATION_FILE);
        let written = serde_json::to_vec(&learned)
            .map_err(std::io::Error::from)
            .and_then(|bytes| {
                path.parent().map_or(Ok(()), create_private_folder)?;
                write_atomically(&path, &bytes)
            });
        if let Err(error) = written {
            self.app.ui.warn(format_args!(
                "{} cannot be written: {error}",
                path.display()
            ));
        }
    }
}
