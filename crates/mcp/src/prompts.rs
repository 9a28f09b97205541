//! Prompts: take a session up again, or hand it over.

#![allow(missing_docs, reason = "the macro makes functions of its own")]

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{GetPromptResult, PromptMessage, Role};
use rmcp::{ErrorData, prompt, prompt_router, schemars};
use serde::{Deserialize, Serialize};

use crate::McpServer;

#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Resume")]
pub(crate) struct ResumeArgs {
    /// Which session: its id, name or key; the last one where left out.
    session: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Handoff")]
pub(crate) struct HandoffArgs {
    /// Which session: its id, name or key; the last one where left out.
    session: Option<String>,
    /// Who takes over: another agent or a person.
    to: Option<String>,
}

#[prompt_router(router = "prompts", vis = "pub(crate)")]
impl McpServer {
    /// Go on with a session where it was left.
    #[prompt(name = "resume")]
    pub(crate) async fn resume_prompt(
        &self,
        Parameters(asked): Parameters<ResumeArgs>,
    ) -> Result<GetPromptResult, ErrorData> {
        let session = self
            .resolve_session(asked.session.as_deref().unwrap_or("last"))
            .await?;
        let text = format!(
            "Let us go on with an earlier session. What follows is what it came to.\n\n{}\n\
             Say in two sentences where we are and what comes next, then wait for me. \
             Save what we say from here on with append_messages (session {}).",
            self.render_handoff(&session).await?,
            session.id()
        );
        let messages = vec![PromptMessage::new_text(Role::User, text)];
        Ok(GetPromptResult::new(messages).with_description("Go on with a session"))
    }

    /// Write down what somebody else needs to take a session over.
    #[prompt(name = "handoff")]
    pub(crate) async fn handoff_prompt(
        &self,
        Parameters(asked): Parameters<HandoffArgs>,
    ) -> Result<GetPromptResult, ErrorData> {
        let session = self
            .resolve_session(asked.session.as_deref().unwrap_or("last"))
            .await?;
        let to = asked.to.as_deref().unwrap_or("whoever goes on with it");
        let text = format!(
            "Hand this session over to {to}. What follows is what it came to.\n\n{}\n\
             Write what {to} needs in order to go on without asking: the goal, what is done, \
             what is under way, what comes next, decisions with their reasons, files, and \
             what stands in the way. Save it with save_checkpoint (session {}).",
            self.render_handoff(&session).await?,
            session.id()
        );
        let messages = vec![PromptMessage::new_text(Role::User, text)];
        Ok(GetPromptResult::new(messages).with_description("Hand a session over"))
    }
}
