//! Voices whose model is a stand-in for a provider's.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use throughline::context::{Encoding, Policy};
use throughline::llm::{Connection, Model, Provider, Secret, Timing, Wire};
use throughline::{Session, Voice};
use throughline_server::{VoiceError, Voices};
use throughline_stand_in::{Reply, Request, StandIn};

/// Everybody is answered by the stand-in.
#[derive(Debug)]
pub(crate) struct StandInVoices {
    model: Arc<dyn Model>,
}

impl StandInVoices {
    pub(crate) fn new(stand_in: &StandIn) -> Arc<Self> {
        let quick = Timing {
            connect: Duration::from_secs(5),
            begin: Duration::from_secs(30),
            idle: Duration::from_secs(30),
            retries: 0,
            backoff: Duration::from_millis(2),
            patience: Duration::from_millis(50),
        };
        let at = Connection {
            provider: "openai".to_owned(),
            model: "model-max".to_owned(),
            base_url: format!("{}/v1/", stand_in.url()),
            key: Secret::new("not-a-key"),
            key_from: None,
            wire: Wire::Chat,
            window: Some(200_000),
        };
        let model = Arc::new(Provider::new(at, quick, 7).unwrap());
        Arc::new(Self { model })
    }
}

#[async_trait]
impl Voices for StandInVoices {
    async fn voice(&self, _: &Session) -> Result<Voice, VoiceError> {
        Ok(Voice {
            model: Some(Arc::clone(&self.model)),
            agent: Some("You are the server's own agent.".to_owned()),
            policy: Policy::default(),
            window: 200_000,
            budget: None,
            encoding: Encoding::Rough,
            documents: Vec::new(),
            summarizer: None,
        })
    }

    fn usual(&self) -> Option<String> {
        Some("model-max".to_owned())
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
