//! Settings, their values and the origin of each value.
//!
//! In increasing precedence: the default, the user's file, the project's file, the
//! environment, flags. An unknown key in a file is an error.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use throughline::context::{Encoding, Policy};
use throughline::{Durability, Owner, ProposalMode};

use crate::error_report::UserError;
use crate::paths::Paths;
use crate::semantic::{MINILM, STATIC, SemanticModel, minilm_folder};
use crate::time::parse_duration;
use crate::ui::Color;

/// A setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its name in files.
    pub(crate) key: &'static str,
    /// Its environment variable.
    pub(crate) variable: &'static str,
    /// What it does.
    pub(crate) about: &'static str,
    /// Whether a project may set it. A folder from someone else must not decide the owner of
    /// sessions or what is deleted.
    pub(crate) allowed_in_project: bool,
}

/// All settings.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        key: "store",
        variable: "TL_STORE",
        about: "where sessions are stored: sqlite:PATH, postgres://…, https://… or memory:",
        allowed_in_project: true,
    },
    Setting {
        key: "owner",
        variable: "TL_OWNER",
        about: "the owner of the sessions",
        allowed_in_project: false,
    },
    Setting {
        key: "durability",
        variable: "TL_DURABILITY",
        about: "full (survives a power cut) or normal (survives a crash)",
        allowed_in_project: false,
    },
    Setting {
        key: "trash_grace",
        variable: "TL_TRASH_GRACE",
        about: "how long sessions stay in the trash before `tl purge` deletes them",
        allowed_in_project: false,
    },
    Setting {
        key: "max_sessions",
        variable: "TL_MAX_SESSIONS",
        about: "maximum number of sessions; `tl purge` trashes older ones (none: no limit)",
        allowed_in_project: false,
    },
    Setting {
        key: "model",
        variable: "TL_MODEL",
        about: "the model: anthropic/claude-sonnet-4-5, ollama/llama3.2, offline",
        allowed_in_project: true,
    },
    Setting {
        key: "models",
        variable: "TL_MODELS",
        about: "additional models that callers of `tl serve` may choose: openai/gpt-5; ollama/llama3.2",
        allowed_in_project: false,
    },
    Setting {
        key: "base_url",
        variable: "TL_BASE_URL",
        about: "the address of the model's provider, if not the default",
        allowed_in_project: false,
    },
    Setting {
        key: "agent",
        variable: "TL_AGENT",
        about: "the agent: a name, or the file that describes it",
        allowed_in_project: true,
    },
    Setting {
        key: "transcripts",
        variable: "TL_TRANSCRIPTS",
        about: "the folder for transcripts of chats (none: not written)",
        allowed_in_project: false,
    },
    Setting {
        key: "policy",
        variable: "TL_POLICY",
        about: "the context policy: default, last-messages, summary-chain, sliding-window, full-history or after-checkpoint",
        allowed_in_project: true,
    },
    Setting {
        key: "policy_with",
        variable: "TL_POLICY_WITH",
        about: "overrides of the policy: window=50000; keep=20 messages",
        allowed_in_project: true,
    },
    Setting {
        key: "window",
        variable: "TL_WINDOW",
        about: "the model's context window, in tokens",
        allowed_in_project: true,
    },
    Setting {
        key: "encoding",
        variable: "TL_ENCODING",
        about: "the token encoding: o200k, cl100k or rough",
        allowed_in_project: true,
    },
    Setting {
        key: "memory",
        variable: "TL_MEMORY",
        about: "what to do with facts found by summaries: propose (you accept them), accept or off",
        allowed_in_project: false,
    },
    Setting {
        key: "semantic",
        variable: "TL_SEMANTIC",
        about: "the model for semantic search: static, minilm or PROVIDER/MODEL",
        allowed_in_project: true,
    },
    Setting {
        key: "color",
        variable: "TL_COLOR",
        about: "auto, always or never",
        allowed_in_project: true,
    },
    Setting {
        key: "pager",
        variable: "TL_PAGER",
        about: "the program for long output (none: no pager)",
        allowed_in_project: false,
    },
];

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    User(PathBuf),
    Project(PathBuf),
    Environment(&'static str),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(path) | Self::Project(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => write!(f, "${name}"),
            Self::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// A value and its origin.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SettingValue {
    pub(crate) key: &'static str,
    #[serde(serialize_with = "without_password")]
    pub(crate) value: String,
    #[serde(serialize_with = "shown")]
    pub(crate) origin: Origin,
    #[serde(skip)]
    pub(crate) about: &'static str,
}

impl SettingValue {
    /// Returns the value with passwords redacted.
    pub(crate) fn redacted(&self) -> String {
        throughline::redact_url(&self.value)
    }
}

fn without_password<S: serde::Serializer>(value: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&throughline::redact_url(value))
}

fn shown<S: serde::Serializer>(origin: &Origin, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(origin)
}

/// The values of all settings.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) values: Vec<SettingValue>,
}

/// Values given as flags.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    pub(crate) store: Option<String>,
    pub(crate) owner: Option<String>,
    pub(crate) color: Option<String>,
    /// Whether nothing is saved.
    pub(crate) no_save: bool,
}

impl Config {
    /// Reads and validates all settings.
    pub(crate) fn load(paths: &Paths, flags: &Flags) -> Result<Self> {
        let mut config = Self::defaults(paths);
        config.read_file(&paths.user_config, false)?;
        if let Some(path) = paths
            .project_config()
            .filter(|path| *path != paths.user_config)
        {
            config.read_file(&path, true)?;
        }
        for setting in SETTINGS {
            if let Some(value) = paths.variable(setting.variable) {
                let origin = Origin::Environment(setting.variable);
                config.set(setting.key, value.to_owned(), origin)?;
            }
        }
        for (key, flag) in [
            ("store", &flags.store),
            ("owner", &flags.owner),
            ("color", &flags.color),
        ] {
            if let Some(value) = flag {
                config.set(key, value.clone(), Origin::Flag(key))?;
            }
        }
        if flags.no_save {
            config.set("store", "memory:".to_owned(), Origin::Flag("no-save"))?;
        }
        Ok(config)
    }

    fn defaults(paths: &Paths) -> Self {
        let pager = paths.variable("PAGER").unwrap_or("less");
        let default = |key: &str| match key {
            "store" => format!("sqlite:{}", paths.store_file().display()),
            "owner" => "local".to_owned(),
            "durability" => "full".to_owned(),
            "trash_grace" => "30d".to_owned(),
            "policy" => "default".to_owned(),
            "window" => "200000".to_owned(),
            "encoding" => Encoding::O200k.name().to_owned(),
            "memory" => "propose".to_owned(),
            "semantic" if minilm_folder(paths).is_dir() => MINILM.to_owned(),
            "semantic" => STATIC.to_owned(),
            "color" => "auto".to_owned(),
            "pager" => pager.to_owned(),
            _ => "none".to_owned(),
        };
        let values = SETTINGS.iter().map(|setting| SettingValue {
            key: setting.key,
            value: default(setting.key),
            origin: Origin::Default,
            about: setting.about,
        });
        Self {
            values: values.collect(),
        }
    }

    fn read_file(&mut self, path: &Path, project: bool) -> Result<()> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                return Err(file_error(path, &format!("it cannot be read: {error}")));
            }
        };
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            file_error(path, &format!("it is not TOML: {error}"))
        })?;
        for (key, value) in table {
            let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
                let known: Vec<_> = SETTINGS.iter().map(|setting| setting.key).collect();
                let known = known.join(", ");
                return Err(file_error(
                    path,
                    &format!("unknown setting {key:?}; available: {known}"),
                ));
            };
            if project && !setting.allowed_in_project {
                let instead = setting.variable;
                return Err(file_error(
                    path,
                    &format!(
                        "{key} cannot be set by a project, only in your config.toml or by ${instead}"
                    ),
                ));
            }
            let mut value = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(flag) => flag.to_string(),
                other => {
                    let kind = other.type_str();
                    return Err(file_error(path, &format!("{key} cannot be of type {kind}")));
                }
            };
            if project && key == "model" && value.contains('=') {
                return Err(file_error(
                    path,
                    "a project may choose a model, but not the address your keys are sent to",
                ));
            }
            let elsewhere = !value.starts_with("sqlite:") && value != "memory:";
            if project && key == "store" && elsewhere {
                return Err(file_error(
                    path,
                    "a project's store may be a file (sqlite:PATH), but not a server that your \
                    sessions are sent to",
                ));
            }
            if project && key == "semantic" && ![STATIC, MINILM].contains(&value.as_str()) {
                return Err(file_error(
                    path,
                    "a project may choose static or minilm, but not a provider your queries are sent to",
                ));
            }
            let origin = if project {
                value = resolve_store_path(&value, path);
                Origin::Project(path.to_owned())
            } else {
                Origin::User(path.to_owned())
            };
            self.set(setting.key, value, origin)?;
        }
        Ok(())
    }

    fn set(&mut self, key: &'static str, value: String, origin: Origin) -> Result<()> {
        validate(key, &value)
            .map_err(|why| UserError::invalid(format!("{key} from {origin}: {why}")))?;
        if let Some(slot) = self.values.iter_mut().find(|slot| slot.key == key) {
            slot.value = value;
            slot.origin = origin;
        }
        Ok(())
    }

    fn value(&self, key: &str) -> &str {
        let found = self.values.iter().find(|value| value.key == key);
        found.map_or("", |value| value.value.as_str())
    }

    fn optional_value(&self, key: &str) -> Option<&str> {
        Some(self.value(key)).filter(|value| *value != "none" && !value.is_empty())
    }

    pub(crate) fn store(&self) -> &str {
        self.value("store")
    }

    /// Returns whether the value is not the default.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        let found = self.values.iter().find(|value| value.key == key);
        found.is_some_and(|value| value.origin != Origin::Default)
    }

    /// Returns the configured model.
    pub(crate) fn model(&self) -> Option<&str> {
        self.optional_value("model")
    }

    /// Returns the additional models that callers of the server may choose.
    pub(crate) fn models(&self) -> impl Iterator<Item = &str> {
        let listed = self.optional_value("models").into_iter();
        listed
            .flat_map(|models| models.split(';'))
            .map(str::trim)
            .filter(|spec| !spec.is_empty())
    }

    /// Returns the address of the model's provider.
    pub(crate) fn base_url(&self) -> Option<&str> {
        self.optional_value("base_url")
    }

    /// Returns the configured agent.
    pub(crate) fn agent(&self) -> Option<&str> {
        self.optional_value("agent")
    }

    /// Returns the folder for transcripts.
    pub(crate) fn transcripts(&self) -> Option<&str> {
        self.optional_value("transcripts")
    }

    /// Returns the owner, if one was set.
    pub(crate) fn owner(&self) -> Result<Option<Owner>> {
        let owner = self.is_set("owner");
        let owner = owner.then(|| self.value("owner").parse::<Owner>());
        Ok(owner.transpose()?)
    }

    pub(crate) fn durability(&self) -> Durability {
        match self.value("durability") {
            "normal" => Durability::Normal,
            _ => Durability::Full,
        }
    }

    pub(crate) fn trash_grace(&self) -> Result<jiff::SignedDuration> {
        parse_duration(self.value("trash_grace")).map_err(anyhow::Error::msg)
    }

    pub(crate) fn max_sessions(&self) -> Option<usize> {
        self.optional_value("max_sessions")
            .and_then(|value| value.parse().ok())
    }

    pub(crate) fn policy(&self) -> &str {
        self.value("policy")
    }

    /// Returns the overrides of the policy.
    pub(crate) fn policy_with(&self) -> &str {
        self.optional_value("policy_with").unwrap_or_default()
    }

    /// Returns the model's context window, in tokens.
    pub(crate) fn window(&self) -> u64 {
        self.value("window").parse().unwrap_or(200_000)
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.value("encoding").parse().unwrap_or(Encoding::O200k)
    }

    /// Returns what to do with facts found by summaries.
    pub(crate) fn memory(&self) -> ProposalMode {
        self.value("memory").parse().unwrap_or_default()
    }

    /// Returns the setting `semantic` and its origin.
    pub(crate) fn semantic(&self) -> SettingValue {
        let found = self.values.iter().find(|value| value.key == "semantic");
        found.cloned().unwrap_or(SettingValue {
            key: "semantic",
            value: STATIC.to_owned(),
            origin: Origin::Default,
            about: "",
        })
    }

    pub(crate) fn color(&self) -> Color {
        self.value("color").parse().unwrap_or_default()
    }

    pub(crate) fn pager(&self) -> Option<String> {
        self.optional_value("pager").map(ToOwned::to_owned)
    }
}

fn file_error(path: &Path, why: &str) -> anyhow::Error {
    UserError::invalid(format!("{}: {why}", path.display())).into()
}

/// Resolves a project's store relative to its configuration file, not the working folder.
fn resolve_store_path(value: &str, config: &Path) -> String {
    match (value.strip_prefix("sqlite:"), config.parent()) {
        (Some(path), Some(folder)) => format!("sqlite:{}", folder.join(path).display()),
        _ => value.to_owned(),
    }
}

/// Validates the value of a key.
fn validate(key: &str, value: &str) -> Result<(), String> {
    match key {
        "store" => value
            .parse::<throughline::StoreAddress>()
            .map(|_| ())
            .map_err(|error| error.to_string()),
        "owner" => value
            .parse::<Owner>()
            .map(|_| ())
            .map_err(|error| error.to_string()),
        "durability" if matches!(value, "full" | "normal") => Ok(()),
        "durability" => Err(format!("{value:?} is not full or normal")),
        "trash_grace" => parse_duration(value).map(|_| ()),
        "max_sessions" if value == "none" => Ok(()),
        "max_sessions" => match value.parse::<usize>() {
            Ok(most) if most > 0 => Ok(()),
            _ => Err(format!("{value:?} is not a number above zero, or none")),
        },
        "policy" if Policy::preset(value).is_some() => Ok(()),
        "policy" => Err(format!(
            "{value:?} is not one of {}",
            Policy::PRESETS.join(", ")
        )),
        "window" => match value.parse::<u64>() {
            Ok(tokens) if tokens > 0 => Ok(()),
            _ => Err(format!("{value:?} is not a number above zero")),
        },
        "encoding" => value
            .parse::<Encoding>()
            .map(|_| ())
            .map_err(|error| error.to_string()),
        "memory" => value.parse::<ProposalMode>().map(|_| ()),
        "semantic" => value.parse::<SemanticModel>().map(|_| ()),
        "color" => value.parse::<Color>().map(|_| ()),
        _ => Ok(()),
    }
}
