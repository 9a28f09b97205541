//! Settings: what they are, and where each value came from.
//!
//! In rising precedence: the default, the person's file, the project's file, the
//! environment, flags. A file with a key that means nothing is an error, not a guess.

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

/// One thing that can be set.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its name in files.
    pub(crate) key: &'static str,
    /// Its name in the environment.
    pub(crate) variable: &'static str,
    /// What it does.
    pub(crate) about: &'static str,
    /// Whether a project may set it: a folder somebody else made must not decide whose
    /// sessions these are, or what is thrown away.
    pub(crate) allowed_in_project: bool,
}

/// Everything that can be set.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        key: "store",
        variable: "TL_STORE",
        about: "where sessions are kept: sqlite:PATH, postgres://…, https://… or memory:",
        allowed_in_project: true,
    },
    Setting {
        key: "owner",
        variable: "TL_OWNER",
        about: "whose sessions these are",
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
        about: "how long `tl purge` leaves sessions in the trash",
        allowed_in_project: false,
    },
    Setting {
        key: "max_sessions",
        variable: "TL_MAX_SESSIONS",
        about: "how many sessions `tl purge` leaves in use (none: all)",
        allowed_in_project: false,
    },
    Setting {
        key: "model",
        variable: "TL_MODEL",
        about: "who answers: anthropic/claude-sonnet-4-5, ollama/llama3.2, offline",
        allowed_in_project: true,
    },
    Setting {
        key: "models",
        variable: "TL_MODELS",
        about: "models that callers of `tl serve` may choose besides: openai/gpt-5; ollama/llama3.2",
        allowed_in_project: false,
    },
    Setting {
        key: "base_url",
        variable: "TL_BASE_URL",
        about: "the address of the model's provider, where it is not the usual one",
        allowed_in_project: false,
    },
    Setting {
        key: "agent",
        variable: "TL_AGENT",
        about: "the agent that answers: a name, or the file that describes it",
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
        about: "how requests are made: default, aiarmy, chain, bot, agent or dagent",
        allowed_in_project: true,
    },
    Setting {
        key: "policy_with",
        variable: "TL_POLICY_WITH",
        about: "changes to the policy: window=50000; keep=20 messages",
        allowed_in_project: true,
    },
    Setting {
        key: "window",
        variable: "TL_WINDOW",
        about: "the model's window, in tokens",
        allowed_in_project: true,
    },
    Setting {
        key: "encoding",
        variable: "TL_ENCODING",
        about: "how tokens are counted: o200k, cl100k or rough",
        allowed_in_project: true,
    },
    Setting {
        key: "memory",
        variable: "TL_MEMORY",
        about: "facts that summaries find: propose (you accept them), accept or off",
        allowed_in_project: false,
    },
    Setting {
        key: "semantic",
        variable: "TL_SEMANTIC",
        about: "what compares searches by meaning: static, minilm or PROVIDER/MODEL",
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

/// Where a value came from.
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

/// A value and where it came from.
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
    /// The value as it may be shown.
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

/// What is set.
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
    /// Whether nothing is to be kept.
    pub(crate) no_save: bool,
}

impl Config {
    /// Reads everything, and refuses what makes no sense.
    pub(crate) fn load(places: &Paths, flags: &Flags) -> Result<Self> {
        let mut config = Self::defaults(places);
        config.read_file(&places.user_config, false)?;
        if let Some(path) = places
            .project_config()
            .filter(|path| *path != places.user_config)
        {
            config.read_file(&path, true)?;
        }
        for setting in SETTINGS {
            if let Some(value) = places.variable(setting.variable) {
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

    fn defaults(places: &Paths) -> Self {
        let pager = places.variable("PAGER").unwrap_or("less");
        let default = |key: &str| match key {
            "store" => format!("sqlite:{}", places.store_file().display()),
            "owner" => "local".to_owned(),
            "durability" => "full".to_owned(),
            "trash_grace" => "30d".to_owned(),
            "policy" => "default".to_owned(),
            "window" => "200000".to_owned(),
            "encoding" => Encoding::O200k.name().to_owned(),
            "memory" => "propose".to_owned(),
            "semantic" if minilm_folder(places).is_dir() => MINILM.to_owned(),
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
                    &format!("there is no setting {key:?}; there are {known}"),
                ));
            };
            if project && !setting.allowed_in_project {
                let instead = setting.variable;
                return Err(file_error(
                    path,
                    &format!(
                        "{key} cannot be set by a project, only in your own file or by ${instead}"
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
                    "a project may name a model, and not where your keys are sent",
                ));
            }
            let elsewhere = !value.starts_with("sqlite:") && value != "memory:";
            if project && key == "store" && elsewhere {
                return Err(file_error(
                    path,
                    "a project's store may be a file of its own (sqlite:PATH), and not a place \
                     where your sessions are sent",
                ));
            }
            if project && key == "semantic" && ![STATIC, MINILM].contains(&value.as_str()) {
                return Err(file_error(
                    path,
                    "a project may choose static or minilm, and not where your words are sent",
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

    /// Whether somebody said what it is to be.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        let found = self.values.iter().find(|value| value.key == key);
        found.is_some_and(|value| value.origin != Origin::Default)
    }

    /// The model that is to answer.
    pub(crate) fn model(&self) -> Option<&str> {
        self.optional_value("model")
    }

    /// The models that callers of the server may choose besides.
    pub(crate) fn models(&self) -> impl Iterator<Item = &str> {
        let listed = self.optional_value("models").into_iter();
        listed
            .flat_map(|models| models.split(';'))
            .map(str::trim)
            .filter(|spec| !spec.is_empty())
    }

    /// The address of its provider.
    pub(crate) fn base_url(&self) -> Option<&str> {
        self.optional_value("base_url")
    }

    /// The agent that is to answer.
    pub(crate) fn agent(&self) -> Option<&str> {
        self.optional_value("agent")
    }

    /// The folder for transcripts.
    pub(crate) fn transcripts(&self) -> Option<&str> {
        self.optional_value("transcripts")
    }

    /// On whose behalf, where somebody said so.
    pub(crate) fn owner(&self) -> Result<Option<Owner>> {
        let said = self.is_set("owner");
        let said = said.then(|| self.value("owner").parse::<Owner>());
        Ok(said.transpose()?)
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

    /// Changes to the policy.
    pub(crate) fn policy_with(&self) -> &str {
        self.optional_value("policy_with").unwrap_or_default()
    }

    /// The model's window, in tokens.
    pub(crate) fn window(&self) -> u64 {
        self.value("window").parse().unwrap_or(200_000)
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.value("encoding").parse().unwrap_or(Encoding::O200k)
    }

    /// What becomes of facts that summaries find.
    pub(crate) fn memory(&self) -> ProposalMode {
        self.value("memory").parse().unwrap_or_default()
    }

    /// What compares searches by meaning, and who said so.
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

/// A project's store is beside its file, not wherever the program was started.
fn resolve_store_path(value: &str, config: &Path) -> String {
    match (value.strip_prefix("sqlite:"), config.parent()) {
        (Some(path), Some(folder)) => format!("sqlite:{}", folder.join(path).display()),
        _ => value.to_owned(),
    }
}

/// Whether a value makes sense for its key.
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
