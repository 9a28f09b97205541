//! The table of known providers: their protocols, URLs, variables and default models.

use crate::ApiProtocol;

/// A known provider.
#[derive(Debug)]
pub(crate) struct Vendor {
    pub(crate) name: &'static str,
    /// Other names for it.
    aliases: &'static [&'static str],
    /// Prefixes of its model names.
    prefixes: &'static [&'static str],
    pub(crate) protocol: ApiProtocol,
    pub(crate) base_url: Option<&'static str>,
    /// Variables that may hold its key, the usual one first.
    pub(crate) key_variables: &'static [&'static str],
    /// Variables that may hold another base URL.
    pub(crate) address_variables: &'static [&'static str],
    pub(crate) needs_key: bool,
    pub(crate) default_model: Option<&'static str>,
}

impl Vendor {
    /// Returns the protocol for a model. OpenAI itself serves its newer models with Responses;
    /// compatible servers use Chat Completions.
    pub(crate) fn protocol_for(&self, model: &str, at_home: bool) -> ApiProtocol {
        let is_newer = |model: &str| {
            let version = model.strip_prefix("gpt-").unwrap_or_default();
            version.starts_with(|first: char| ('5'..='9').contains(&first))
        };
        if self.name == "openai" && at_home && is_newer(model) {
            return ApiProtocol::Responses;
        }
        self.protocol
    }
}

/// Any OpenAI-compatible server.
pub(crate) const COMPATIBLE: Vendor = Vendor {
    name: "compatible",
    aliases: &[
        "openai-compatible",
        "custom",
        "llama.cpp",
        "llamacpp",
        "vllm",
        "lmstudio",
    ],
    prefixes: &[],
    protocol: ApiProtocol::Chat,
    base_url: None,
    key_variables: &["OPENAI_API_KEY"],
    address_variables: &["OPENAI_BASE_URL"],
    needs_key: false,
    default_model: None,
};

/// The known providers, in the order they are tried.
pub(crate) const VENDORS: [Vendor; 9] = [
    Vendor {
        name: "anthropic",
        aliases: &["claude"],
        prefixes: &["claude-"],
        protocol: ApiProtocol::Anthropic,
        base_url: Some("https://api.anthropic.com/v1/"),
        key_variables: &["ANTHROPIC_API_KEY"],
        address_variables: &["ANTHROPIC_BASE_URL"],
        needs_key: true,
        default_model: Some("claude-sonnet-5-5"),
    },
    Vendor {
        name: "openai",
        aliases: &["gpt"],
        prefixes: &[
            "gpt-3", "gpt-4", "gpt-5", "gpt-6", "chatgpt-", "o1", "o3", "o4",
        ],
        protocol: ApiProtocol::Chat,
        base_url: Some("https://api.openai.com/v1/"),
        key_variables: &["OPENAI_API_KEY"],
        address_variables: &["OPENAI_BASE_URL"],
        needs_key: true,
        default_model: Some("gpt-6.1-sol"),
    },
    Vendor {
        name: "openrouter",
        aliases: &["open-router", "open_router"],
        prefixes: &[],
        protocol: ApiProtocol::Chat,
        base_url: Some("https://openrouter.ai/api/v1/"),
        key_variables: &["OPENROUTER_API_KEY", "OPEN_ROUTER_API_KEY"],
        address_variables: &[],
        needs_key: true,
        default_model: Some("anthropic/claude-sonnet-5.5"),
    },
    Vendor {
        name: "gemini",
        aliases: &["google"],
        prefixes: &["gemini-"],
        protocol: ApiProtocol::Gemini,
        base_url: Some("https://generativelanguage.googleapis.com/v1beta/"),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        address_variables: &["GEMINI_BASE_URL"],
        needs_key: true,
        default_model: Some("gemini-3.8-flash"),
    },
    Vendor {
        name: "groq",
        aliases: &[],
        prefixes: &[],
        protocol: ApiProtocol::Chat,
        base_url: Some("https://api.groq.com/openai/v1/"),
        key_variables: &["GROQ_API_KEY"],
        address_variables: &[],
        needs_key: true,
        default_model: Some("openai/gpt-oss-120b"),
    },
    Vendor {
        name: "mistral",
        aliases: &[],
        prefixes: &["mistral-", "codestral-", "magistral-", "devstral-"],
        protocol: ApiProtocol::Chat,
        base_url: Some("https://api.mistral.ai/v1/"),
        key_variables: &["MISTRAL_API_KEY"],
        address_variables: &[],
        needs_key: true,
        default_model: Some("mistral-large-latest"),
    },
    Vendor {
        name: "deepseek",
        aliases: &[],
        prefixes: &["deepseek-"],
        protocol: ApiProtocol::Chat,
        base_url: Some("https://api.deepseek.com/v1/"),
        key_variables: &["DEEPSEEK_API_KEY"],
        address_variables: &[],
        needs_key: true,
        default_model: Some("deepseek-chat"),
    },
    Vendor {
        name: "xai",
        aliases: &["grok"],
        prefixes: &["grok-"],
        protocol: ApiProtocol::Chat,
        base_url: Some("https://api.x.ai/v1/"),
        key_variables: &["XAI_API_KEY"],
        address_variables: &[],
        needs_key: true,
        default_model: None,
    },
    Vendor {
        name: "ollama",
        aliases: &[],
        prefixes: &[],
        protocol: ApiProtocol::Chat,
        base_url: Some("http://127.0.0.1:11434/v1/"),
        key_variables: &[],
        address_variables: &["OLLAMA_HOST"],
        needs_key: false,
        default_model: Some("llama3.2"),
    },
];

/// Finds a provider by name or alias.
pub(crate) fn find_vendor(name: &str) -> Option<&'static Vendor> {
    let name = name.trim().to_ascii_lowercase();
    VENDORS
        .iter()
        .chain([&COMPATIBLE])
        .find(|vendor| vendor.name == name || vendor.aliases.contains(&name.as_str()))
}

/// Finds the provider of a model by its name.
pub(crate) fn find_vendor_by_model(model: &str) -> Option<&'static Vendor> {
    VENDORS.iter().find(|vendor| {
        let mut prefixes = vendor.prefixes.iter();
        prefixes.any(|prefix| model.starts_with(prefix))
    })
}

/// Lists the providers' names for messages.
pub(crate) fn names() -> String {
    VENDORS.map(|vendor| vendor.name).join(", ")
}
