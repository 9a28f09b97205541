//! Tests of how a model endpoint is resolved from specs, keys and the environment.

use super::*;

fn resolve(variables: &[(&str, &str)], spec: &str) -> Result<Option<ModelEndpoint>, EndpointError> {
    resolve_with_keys(variables, spec, "")
}

fn resolve_with_keys(
    variables: &[(&str, &str)],
    spec: &str,
    keys: &str,
) -> Result<Option<ModelEndpoint>, EndpointError> {
    let spec = match spec {
        "" => ModelSpec::default(),
        spec => ModelSpec::parse(spec).unwrap(),
    };
    let keys = ApiKeys::parse(keys, "keys.toml").unwrap();
    resolve_endpoint(&spec, &keys, &|name| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "sk-a");
const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "sk-o");

#[test]
fn with_nothing_at_hand_there_is_no_connection() {
    assert_eq!(resolve(&[], ""), Ok(None));
    assert_eq!(resolve(&[("OPENAI_API_KEY", " ")], ""), Ok(None));
    assert_eq!(resolve(&[("OPENAI_BASE_URL", "http://h/v1")], ""), Ok(None));
}

#[test]
fn what_the_environment_offers_is_taken() {
    let found = resolve(&[OPENAI, ANTHROPIC], "").unwrap().unwrap();
    assert_eq!(
        (found.provider.as_str(), found.protocol),
        ("anthropic", ApiProtocol::Anthropic)
    );
    assert_eq!(found.base_url, "https://api.anthropic.com/v1/");
    assert_eq!(found.key_source.as_deref(), Some("ANTHROPIC_API_KEY"));

    let found = resolve(&[OPENAI], "").unwrap().unwrap();
    assert_eq!(
        (found.provider.as_str(), found.protocol),
        ("openai", ApiProtocol::Responses)
    );

    let found = resolve(&[("OLLAMA_HOST", "0.0.0.0:11434")], "")
        .unwrap()
        .unwrap();
    assert_eq!(found.base_url, "http://127.0.0.1:11434/v1/");
    assert_eq!((found.key, found.protocol), (None, ApiProtocol::Chat));

    let found = resolve_with_keys(&[], "", "groq = 'k'").unwrap().unwrap();
    assert_eq!(
        (found.provider.as_str(), found.key_source.as_deref()),
        ("groq", Some("keys.toml"))
    );
}

#[test]
fn a_spec_says_who_and_what() {
    let all = [ANTHROPIC, OPENAI, ("OPENROUTER_API_KEY", "sk-r")];
    for (spec, provider, model) in [
        (
            "anthropic/claude-sonnet-4-5",
            "anthropic",
            "claude-sonnet-4-5",
        ),
        ("claude-opus-5-5", "anthropic", "claude-opus-5-5"),
        ("gpt-4o", "openai", "gpt-4o"),
        ("provider=openai model=gpt-4o", "openai", "gpt-4o"),
        ("model=openai/gpt-4o", "openai", "gpt-4o"),
        ("openrouter/openai/gpt-4o", "openrouter", "openai/gpt-4o"),
        (
            "provider=openrouter,model=openai/gpt-4o",
            "openrouter",
            "openai/gpt-4o",
        ),
        ("ollama/llama3.2:3b", "ollama", "llama3.2:3b"),
        ("anthropic", "anthropic", "claude-sonnet-5-5"),
        ("vllm/qwen base_url=x", "", ""),
    ] {
        if provider.is_empty() {
            assert!(ModelSpec::parse(spec).is_err());
            continue;
        }
        let found = resolve(&all, spec).unwrap().unwrap();
        assert_eq!(
            (found.provider.as_str(), found.model.as_str()),
            (provider, model),
            "{spec}"
        );
    }
    for spec in ["", "model=", "colour=red", "model=a model=b"] {
        assert!(ModelSpec::parse(spec).is_err(), "{spec}");
    }
}

#[test]
fn an_error_names_what_to_do() {
    let message = |spec| resolve(&[], spec).unwrap_err().to_string();
    assert_eq!(
        message("openai/gpt-5"),
        "no API key for openai: set OPENAI_API_KEY"
    );
    assert!(message("my-model").contains("provider/model"));
    assert!(message("provider=acme").contains("anthropic, openai"));
    assert_eq!(message("xai"), "no API key for xai: set XAI_API_KEY");
    assert!(message("model=m base_url=ftp://x").contains("http://HOST:PORT/v1"));
}

#[test]
fn any_compatible_address_will_do_without_a_key() {
    let spec = "model=meta-llama/Llama-3.1-8B base_url=http://localhost:8000";
    let found = resolve(&[], spec).unwrap().unwrap();
    assert_eq!(
        (found.provider.as_str(), found.key.is_none()),
        ("compatible", true)
    );
    assert_eq!(found.base_url, "http://localhost:8000/v1/");
    let found = resolve(&[], "provider=acme model=m base_url=http://a/v1")
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.provider.as_str(), found.protocol),
        ("acme", ApiProtocol::Chat)
    );
    let found = resolve(&[OPENAI, ("OPENAI_BASE_URL", "http://p/v1")], "gpt-5")
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.base_url.as_str(), found.protocol),
        ("http://p/v1/", ApiProtocol::Chat)
    );
    assert_eq!(
        resolve(&[], "base_url=http://a"),
        Err(EndpointError::MissingModel("compatible".into()))
    );
}

#[test]
fn a_layer_of_another_provider_adds_nothing() {
    let config = ModelSpec {
        base_url: Some("http://proxy".into()),
        ..ModelSpec::parse("anthropic/claude-sonnet-5-5").unwrap()
    };
    let flag = ModelSpec::parse("openai/gpt-5").unwrap();
    assert_eq!(flag.clone().with_fallback(config.clone()), flag);
    let same = ModelSpec::parse("claude-opus-5-5")
        .unwrap()
        .with_fallback(config.clone());
    assert_eq!(same.base_url.as_deref(), Some("http://proxy"));
    assert_eq!(same.model.as_deref(), Some("claude-opus-5-5"));
    let bare = ModelSpec::parse("qwen3")
        .unwrap()
        .with_fallback(ModelSpec::parse("ollama").unwrap());
    assert_eq!(bare.provider.as_deref(), Some("ollama"));
    assert_eq!(ModelSpec::default().with_fallback(config.clone()), config);
}

#[test]
fn a_connection_knows_its_price_and_its_window() {
    let found = resolve(&[ANTHROPIC], "claude-sonnet-4-5").unwrap().unwrap();
    let usage = Usage {
        input: 1_000_000,
        output: 1_000_000,
        ..Usage::default()
    };
    assert_eq!(found.cost(&usage), Some(18.0));
    assert_eq!(
        (found.window, found.encoding()),
        (Some(200_000), Encoding::O200k)
    );
    assert!(!format!("{found:?}").contains("sk-a"));
    let found = resolve(&[], "ollama/llama3.2").unwrap().unwrap();
    assert_eq!(
        (found.cost(&usage), found.encoding()),
        (None, Encoding::Cl100k)
    );
}
