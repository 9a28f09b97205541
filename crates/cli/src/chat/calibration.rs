//! Persists the token-count calibration learned from models' reported usage.

use throughline::context::Calibration;

use super::Chat;
use crate::paths::{create_private_folder, write_atomically};

const CALIBRATION_FILE: &str = "calibration.json";

impl Chat<'_> {
    /// Loads the stored calibration.
    pub(super) fn load_calibration(&self) {
        let path = self.app.paths.state_file(CALIBRATION_FILE);
        let Ok(text) = std::fs::read_to_string(&path) else {
            // There is no calibration yet.
            return;
        };
        match serde_json::from_str::<Calibration>(&text) {
            Ok(learned) => self.tl.set_calibration(learned),
            Err(error) => self.app.ui.warn(format_args!(
                "{} cannot be read and is recreated: {error}",
                path.display()
            )),
        }
    }

    /// Stores the calibration.
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
