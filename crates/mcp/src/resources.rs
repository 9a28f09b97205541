//! MCP resources: sessions and memory by URI.
//!
//! `throughline://memory`, `throughline://memory/PROJECT`, `throughline://sessions/ID` and
//! `throughline://sessions/ID/from/SEQ`. A project id is percent-encoded.

use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use throughline::{Cursor, Seq, SessionFilter, SessionId};

use crate::McpServer;
use crate::history_view::{FactView, MAX_HISTORY_CHARS, QUOTE_NOTICE, take_fitting};
use crate::tool_error::ToolError;
use crate::tools::parse_cursor;

const SESSIONS: &str = "throughline://sessions/";
const MEMORY: &str = "throughline://memory";
const MARKDOWN: &str = "text/markdown";
/// The number of sessions per page.
const SESSIONS_PER_PAGE: usize = 50;
/// The maximum number of entries in one resource.
const MAX_ENTRIES: usize = 200;
/// The maximum number of characters of one entry.
const MAX_ENTRY_CHARS: usize = 8_000;

/// Returns the URI templates.
pub(crate) fn templates() -> ListResourceTemplatesResult {
    let template = |uri: String, name: &str, description: &str| {
        ResourceTemplate::new(uri, name)
            .with_description(description)
            .with_mime_type(MARKDOWN)
    };
    ListResourceTemplatesResult::with_all_items(vec![
        template(
            format!("{SESSIONS}{{id}}"),
            "session",
            "A session's summary and its last messages",
        ),
        template(
            format!("{SESSIONS}{{id}}/from/{{seq}}"),
            "session-entries",
            "A session's entries from a number on, as many as fit",
        ),
        template(
            format!("{MEMORY}/{{project}}"),
            "project-memory",
            "The facts remembered for a project, by its percent-encoded id",
        ),
    ])
}

impl McpServer {
    /// Returns one page of resources: memory first, then sessions.
    pub(crate) async fn resource_page(
        &self,
        cursor: Option<&str>,
    ) -> Result<ListResourcesResult, ToolError> {
        let after: Option<Cursor> = parse_cursor(cursor)?;
        let mut listed = Vec::new();
        if after.is_none() {
            listed.push(
                Resource::new(MEMORY, "memory")
                    .with_title("Facts remembered everywhere")
                    .with_mime_type(MARKDOWN),
            );
            for project in self.tl.projects().await? {
                let uri = format!("{MEMORY}/{}", percent_encode(project.id.as_str()));
                listed.push(
                    Resource::new(uri, format!("memory of {}", project.name))
                        .with_title(format!("Facts remembered for {}", project.name))
                        .with_mime_type(MARKDOWN),
                );
            }
        }
        let page = self
            .tl
            .list(&SessionFilter::default(), after.as_ref(), SESSIONS_PER_PAGE)
            .await?;
        listed.extend(page.items.iter().map(|info| {
            Resource::new(format!("{SESSIONS}{}", info.id), info.id.as_str())
                .with_title(self.redact_text(info.title()))
                .with_description(self.redact_text(&info.preview))
                .with_mime_type(MARKDOWN)
        }));
        let mut result = ListResourcesResult::with_all_items(listed);
        result.next_cursor = page.next.map(|next| next.to_string());
        Ok(result)
    }

    /// Reads the resource at a URI.
    pub(crate) async fn read_uri(&self, uri: &str) -> Result<ReadResourceResult, ToolError> {
        let unknown = || {
            ToolError::not_found(format!(
                "there is no resource {uri}; use resources/list or resources/templates/list \
                 to find one"
            ))
        };
        let text = if uri == MEMORY {
            self.render_memory(None).await?
        } else if let Some(project) = uri.strip_prefix(&format!("{MEMORY}/")) {
            let project = percent_decode(project).ok_or_else(unknown)?;
            self.render_memory(Some(&project)).await?
        } else if let Some(rest) = uri.strip_prefix(SESSIONS) {
            let (id, from) = match rest.split_once("/from/") {
                None => (rest, None),
                Some((id, from)) => (id, Some(from.parse::<u64>().map_err(|_| unknown())?)),
            };
            let id: SessionId = id.parse().map_err(|_| unknown())?;
            let session = self.tl.session(&id).await.map_err(|error| {
                if error.kind() == throughline::ErrorKind::NotFound {
                    unknown()
                } else {
                    error.into()
                }
            })?;
            match from {
                None => self.render_handoff(&session).await?,
                Some(from) => self.render_entries(&session, from).await?,
            }
        } else {
            return Err(unknown());
        };
        let contents = ResourceContents::text(text, uri).with_mime_type(MARKDOWN);
        Ok(ReadResourceResult::new(vec![contents]))
    }

    /// Renders a session's entries from a number on, and where they continue.
    async fn render_entries(
        &self,
        session: &throughline::Session,
        from: u64,
    ) -> Result<String, ToolError> {
        let head = session.record().await?.info.head.0;
        let entries = session.entries(Seq(from.max(1)), MAX_ENTRIES).await?;
        let shown = entries
            .into_iter()
            .map(|entry| self.entry_view(entry, MAX_ENTRY_CHARS));
        let entries = take_fitting(shown.collect(), false);
        let mut text = format!("{QUOTE_NOTICE}\n\n<session-history>\n");
        for entry in &entries {
            text.push_str(&entry.to_transcript());
        }
        text.push_str("</session-history>\n");
        if let Some(last) = entries.last().filter(|last| last.seq < head) {
            let next = last.seq + 1;
            let id = session.id();
            text.push_str(&format!("\nContinues at {SESSIONS}{id}/from/{next}\n"));
        }
        Ok(text)
    }

    /// Renders the facts remembered for a project, or everywhere.
    async fn render_memory(&self, project: Option<&str>) -> Result<String, ToolError> {
        let memory = match project {
            None => self.memory(None),
            Some(named) => self.memory(self.resolve_project(Some(named)).await?),
        };
        let mut text = format!("{QUOTE_NOTICE}\n\n");
        let mut left = 0;
        for fact in memory.top_facts(&[], usize::MAX).await? {
            let fact: FactView = self.fact_view(fact, "");
            if text.chars().count() + fact.text.chars().count() > MAX_HISTORY_CHARS {
                left += 1;
                continue;
            }
            text.push_str(&format!("- {}\n", fact.text));
        }
        if left > 0 {
            text.push_str(&format!(
                "\n{left} more facts; use the recall tool to get them.\n"
            ));
        }
        Ok(text)
    }
}

/// Percent-encodes a text as a URI path segment.
fn percent_encode(text: &str) -> String {
    let mut uri = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(byte.into());
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Decodes a percent-encoded path segment, if it is valid.
fn percent_decode(part: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{percent_decode, percent_encode};

    #[test]
    fn a_project_survives_its_address() {
        for id in ["git:example.org/a/b", "dir:/über/x y", "100%"] {
            assert_eq!(percent_decode(&percent_encode(id)).as_deref(), Some(id));
        }
        for broken in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(percent_decode(broken), None, "{broken}");
        }
    }
}
