//! The interfaces that providers offer.

use genai::adapter::AdapterKind;

/// What is spoken with a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApiProtocol {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Chat Completions, which everybody is compatible with.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Google's Gemini.
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
