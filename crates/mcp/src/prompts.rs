//! MCP prompts that resume a session or hand it over.

#![allow(missing_docs, reason = "the macro generates functions")]

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{GetPromptResult, PromptMessage, Role};
use rmcp::{ErrorData, prompt, prompt_router, schemars};
use serde::{Deserialize, Serialize};

use crate::McpServer;

#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Resume")]
pub(crate) struct ResumeArgs {
    /// The session's id, name or key [default: the last session].
    session: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Handoff")]
pub(crate) struct HandoffArgs {
    /// The session's id, name or key [default: the last session].
    session: Option<String>,
    /// Who takes over: another agent or a person.
    to: Option<String>,
}

#[prompt_router(router = "prompts", vis = "pub(crate)")]
impl McpServer {
    /// Resume a session where it ended.
    #[prompt(name = "resume")]
    pub(crate) async fn resume_prompt(
        &self,
        Parameters(args): Parameters<ResumeArgs>,
    ) -> Result<GetPromptResult, ErrorData> {
        let session = self
            .resolve_session(args.session.as_deref().unwrap_or("last"))
            .await?;
        let text = format!(
            "Let us continue an earlier session. Its summary and last messages follow.\n\n{}\n\
             Say in two sentences where we are and what comes next, then wait for me. \
             Save our further messages with append_messages (session {}).",
            self.render_handoff(&session).await?,
            session.id()
        );
        let messages = vec![PromptMessage::new_text(Role::User, text)];
        Ok(GetPromptResult::new(messages).with_description("Resume a session"))
    }

    /// Write a handoff so that another agent or person can continue a session.
    #[prompt(name = "handoff")]
    pub(crate) async fn handoff_prompt(
        &self,
        Parameters(args): Parameters<HandoffArgs>,
    ) -> Result<GetPromptResult, ErrorData> {
        let session = self
            .resolve_session(args.session.as_deref().unwrap_or("last"))
            .await?;
        let to = args.to.as_deref().unwrap_or("the next person or agent");
        let text = format!(
            "Hand this session over to {to}. Its summary and last messages follow.\n\n{}\n\
             Write what {to} needs in order to continue without asking: the goal, what is done, \
             what is in progress, what comes next, decisions with their reasons, files, and \
             blockers. Save it with save_checkpoint (session {}).",
            self.render_handoff(&session).await?,
            session.id()
        );
        let messages = vec![PromptMessage::new_text(Role::User, text)];
        Ok(GetPromptResult::new(messages).with_description("Hand over a session"))
    }
}
