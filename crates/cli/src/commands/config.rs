//! `tl config`: prints settings and where each value comes from.

use anyhow::Result;

use crate::app::App;

/// Show every setting and its origin
///
/// In increasing precedence: the default, your config.toml, the project's
/// .throughline/config.toml, the environment, flags.
#[derive(clap::Args, Debug)]
pub(crate) struct ConfigArgs {
    /// Print one value only
    key: Option<String>,
}

pub(crate) fn run(app: &App, args: &ConfigArgs) -> Result<()> {
    let values = &app.config.values;
    if let Some(key) = &args.key {
        let Some(value) = values.iter().find(|value| value.key == key) else {
            let known: Vec<_> = values.iter().map(|value| value.key).collect();
            return Err(crate::error_report::UserError {
                what: format!("unknown setting {key:?}"),
                hint: Some(format!("available: {}", known.join(", "))),
                kind: throughline::ErrorKind::NotFound,
            }
            .into());
        };
        if app.ui.json {
            app.ui.json(value)?;
        } else {
            app.ui.data(value.redacted())?;
        }
        return Ok(());
    }
    if app.ui.json {
        app.ui.json(values)?;
        return Ok(());
    }
    for value in values {
        app.ui.data(format_args!(
            "{} = {}",
            app.ui.bold(value.key),
            value.redacted()
        ))?;
        app.ui.data(
            app.ui
                .dim(&format!("    {}  [{}]", value.about, value.origin)),
        )?;
    }
    app.ui.status(format_args!(
        "\nYour file: {}",
        app.paths.user_config.display()
    ));
    Ok(())
}
