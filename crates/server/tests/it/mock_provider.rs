//! Responder registries whose model is a mock provider.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use throughline::llm::{ApiProtocol, Model, ModelEndpoint, Provider, Secret, TimeoutPolicy};
use throughline::{Responder, Session};
use throughline_mock_provider::{MockProvider, Reply, Request};
use throughline_server::{ResponderChoice, ResponderError, ResponderRegistry};

/// A registry in which the mock provider answers every session.
#[derive(Debug)]
pub(crate) struct MockResponderRegistry {
    /// The models by id; the first is the default.
    models: Vec<(String, Arc<dyn Model>)>,
    restricts_models: bool,
}

impl MockResponderRegistry {
    /// A registry with one model that answers to any name.
    pub(crate) fn new(mock: &MockProvider) -> Arc<Self> {
        Arc::new(Self {
            models: vec![mock_model(mock, "openai/model-max", ApiProtocol::Chat)],
            restricts_models: false,
        })
    }

    /// A registry with three models to choose from by name.
    pub(crate) fn with_named_models(mock: &MockProvider) -> Arc<Self> {
        Arc::new(Self {
            models: vec![
                mock_model(mock, "openai/model-max", ApiProtocol::Chat),
                mock_model(mock, "openai/model-mini", ApiProtocol::Chat),
                mock_model(mock, "anthropic/model-calm", ApiProtocol::Anthropic),
            ],
            restricts_models: true,
        })
    }
}

fn mock_model(mock: &MockProvider, id: &str, wire: ApiProtocol) -> (String, Arc<dyn Model>) {
    let quick = TimeoutPolicy {
        connect: Duration::from_secs(5),
        first_byte: Duration::from_secs(30),
        idle: Duration::from_secs(30),
        retries: 0,
        backoff: Duration::from_millis(2),
        max_wait: Duration::from_millis(50),
    };
    let (provider, name) = id.split_once('/').unwrap();
    let at = ModelEndpoint {
        provider: provider.to_owned(),
        model: name.to_owned(),
        base_url: format!("{}/v1/", mock.url()),
        key: Secret::new("not-a-key"),
        key_source: None,
        protocol: wire,
        window: Some(200_000),
    };
    let model = Provider::new(at, quick, 7).unwrap();
    (id.to_owned(), Arc::new(model))
}

#[async_trait]
impl ResponderRegistry for MockResponderRegistry {
    async fn responder(
        &self,
        _: Option<&Session>,
        choice: &ResponderChoice,
    ) -> Result<Responder, ResponderError> {
        let id = choice.resolve_model(&self.models())?;
        if let Some(agent) = choice.agent.as_deref().filter(|agent| *agent != "poet") {
            return Err(ResponderError::no_such_agent(agent, &self.agents()));
        }
        let chosen = |(known, _): &&(String, _)| id.as_ref().is_none_or(|id| id == known);
        let (_, model) = self.models.iter().find(chosen).unwrap();
        let agent = match choice.agent {
            Some(_) => "You speak in verse.",
            None => "You are the server's own agent.",
        };
        Ok(Responder {
            model: Some(Arc::clone(model)),
            agent: Some(agent.to_owned()),
            ..Responder::offline()
        })
    }

    fn models(&self) -> Vec<String> {
        self.models.iter().map(|(id, _)| id.clone()).collect()
    }

    fn agents(&self) -> Vec<String> {
        vec!["poet".to_owned()]
    }

    fn restricts_models(&self) -> bool {
        self.restricts_models
    }
}

/// A model that calls the weather tool if it can, and echoes the message otherwise.
pub(crate) fn weather_or_echo(request: &Request) -> Reply {
    let messages = request.body["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    if last["role"] == "tool" {
        let result = last["content"].as_str().unwrap_or_default();
        return Reply::text(format!("The tool says: {result}"));
    }
    let text = request.last_user_text();
    let can = request.body["tools"][0]["function"]["name"] == "get_weather";
    if can && text.contains("weather") {
        let city = serde_json::json!({"city": "Paris"});
        return Reply::default().and_call("call_weather", "get_weather", city);
    }
    let count = messages.iter().filter(|m| m["role"] != "system").count();
    let reply = Reply::text(format!("Heard {count} messages, the last one: {text}"));
    if text.contains("take your time") {
        return reply.with_delay(Duration::from_millis(200));
    }
    reply
}
