//! The API protocols that providers implement.

use genai::adapter::AdapterKind;

/// The API protocol of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApiProtocol {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, which most other providers implement too.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Google Gemini.
    Gemini,
}

impl ApiProtocol {
    pub(super) fn adapter(self) -> AdapterKind {
        match self {
            Self::Anthropic => AdapterKind::Anthropic,
            Self::Chat => AdapterKind::OpenAI,
            Self::Responses => AdapterKind::OpenAIResp,
            Self::Gemini => AdapterKind::Gemini,
        }
    }
}
