//! Voices whose model is a stand-in for a provider's.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use throughline::llm::{Connection, Model, Provider, Secret, Timing, Wire};
use throughline::{Session, Voice};
use throughline_server::{Choice, VoiceError, Voices};
use throughline_stand_in::{Reply, Request, StandIn};

/// Everybody is answered by the stand-in.
#[derive(Debug)]
pub(crate) struct StandInVoices {
    /// The models, by their ids; the first is the usual one.
    models: Vec<(String, Arc<dyn Model>)>,
    named: bool,
}

impl StandInVoices {
    /// One model, whatever it is called.
    pub(crate) fn new(stand_in: &StandIn) -> Arc<Self> {
        Arc::new(Self {
            models: vec![model(stand_in, "openai/model-max", Wire::Chat)],
            named: false,
        })
    }

    /// Three models, of which callers choose by name.
    pub(crate) fn named(stand_in: &StandIn) -> Arc<Self> {
        Arc::new(Self {
            models: vec![
                model(stand_in, "openai/model-max", Wire::Chat),
                model(stand_in, "openai/model-mini", Wire::Chat),
                model(stand_in, "anthropic/model-calm", Wire::Anthropic),
            ],
            named: true,
        })
    }
}

fn model(stand_in: &StandIn, id: &str, wire: Wire) -> (String, Arc<dyn Model>) {
    let quick = Timing {
        connect: Duration::from_secs(5),
        begin: Duration::from_secs(30),
        idle: Duration::from_secs(30),
        retries: 0,
        backoff: Duration::from_millis(2),
        patience: Duration::from_millis(50),
    };
    let (provider, name) = id.split_once('/').unwrap();
    let at = Connection {
        provider: provider.to_owned(),
        model: name.to_owned(),
        base_url: format!("{}/v1/", stand_in.url()),
        key: Secret::new("not-a-key"),
        key_from: None,
        wire,
        window: Some(200_000),
    };
    let model = Provider::new(at, quick, 7).unwrap();
    (id.to_owned(), Arc::new(model))
}

#[async_trait]
impl Voices for StandInVoices {
    async fn voice(&self, _: Option<&Session>, choice: &Choice) -> Result<Voice, VoiceError> {
        let id = choice.model_among(&self.models())?;
        if let Some(agent) = choice.agent.as_deref().filter(|agent| *agent != "poet") {
            return Err(VoiceError::no_agent(agent, &self.agents()));
        }
        let chosen = |(known, _): &&(String, _)| id.as_ref().is_none_or(|id| id == known);
        let (_, model) = self.models.iter().find(chosen).unwrap();
        let agent = match choice.agent {
            Some(_) => "You speak in verse.",
            None => "You are the server's own agent.",
        };
        Ok(Voice {
            model: Some(Arc::clone(model)),
            agent: Some(agent.to_owned()),
            ..Voice::offline()
        })
    }

    fn models(&self) -> Vec<String> {
        self.models.iter().map(|(id, _)| id.clone()).collect()
    }

    fn agents(&self) -> Vec<String> {
        vec!["poet".to_owned()]
    }

    fn names_models(&self) -> bool {
        self.named
    }
}

/// An agent that asks for the weather where it can, and echoes otherwise.
pub(crate) fn weather_or_echo(request: &Request) -> Reply {
    let messages = request.body["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    if last["role"] == "tool" {
        let told = last["content"].as_str().unwrap_or_default();
        return Reply::text(format!("The tool says: {told}"));
    }
    let said = request.last_said();
    let can = request.body["tools"][0]["function"]["name"] == "get_weather";
    if can && said.contains("weather") {
        let city = serde_json::json!({"city": "Paris"});
        return Reply::default().and_call("call_weather", "get_weather", city);
    }
    let told = messages.iter().filter(|m| m["role"] != "system").count();
    let reply = Reply::text(format!("Heard {told} messages, the last one: {said}"));
    if said.contains("take your time") {
        return reply.slowly(Duration::from_millis(200));
    }
    reply
}
