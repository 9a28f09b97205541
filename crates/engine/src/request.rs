//! Builds the next model request from a session of any length.
//!
//! Reads the session record, the checkpoint in effect and as much of the log's tail as
//! fits, so the cost depends on the size of the request, not on the length of the
//! history.

use throughline_context::{
    ContextDocument, CountedEntry, Encoding, Excerpt, Omission, Policy, Request, RequestInputs,
    SectionName, count_entry_tokens,
};
use throughline_model::{Body, Content, Entry, Record, Seq, Span};
use throughline_store::ReadRange;

use crate::retrieval::StalenessTolerance;
use crate::{Error, Session};

/// The size of the first page. Each further page is twice as long, up to the largest,
/// so that small requests read little and large ones need few reads.
const FIRST_PAGE: usize = 32;
const LARGEST_PAGE: usize = 1_024;
/// The most tokens of one entry that count toward the budget while reading: a longer
/// entry may be elided, leaving room for earlier ones.
const MAX_COUNTED_TOKENS: u64 = 2_000;

/// The name of the context document that holds a session's policy, such as
/// `sliding-window` or `default; window=50000`. It is not part of the requests.
pub const POLICY_DOCUMENT: &str = "policy";

/// The name of the context document that holds client metadata for a session, a JSON
/// object of strings. It is not part of the requests.
pub const METADATA_DOCUMENT: &str = "metadata:openai";

/// Options for building a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestOptions<'a> {
    /// The policy to build the request by.
    pub policy: &'a Policy,
    /// The token limit, if lower than the policy's window.
    pub budget: Option<u64>,
    /// The model's context window, in tokens.
    pub window: u64,
    /// The encoding that tokens are counted with.
    pub encoding: Encoding,
    /// The agent's instructions.
    pub agent: Option<&'a str>,
    /// Project context, in addition to the session's own documents.
    pub documents: &'a [ContextDocument],
    /// The new message.
    pub message: Option<&'a Content>,
    /// The entry of the new message, if it has been appended: the request is built from
    /// the entries before it.
    pub before: Option<Seq>,
    /// The model that receives the request; its token counts have been calibrated.
    pub model: Option<&'a str>,
}

impl<'a> RequestOptions<'a> {
    /// Creates options for a model with this context window: no agent, documents or new
    /// message, and no limit but the window.
    pub fn new(policy: &'a Policy, window: u64, encoding: Encoding) -> Self {
        Self {
            policy,
            budget: None,
            window,
            encoding,
            agent: None,
            documents: &[],
            message: None,
            before: None,
            model: None,
        }
    }

    /// Returns the request's token limit.
    pub fn token_budget(&self) -> u64 {
        let window = self.policy.effective_window(self.window);
        self.budget.map_or(window, |budget| budget.min(window))
    }

    /// Returns the last entry of the log that the request may use.
    pub(crate) fn last_entry(&self, record: &Record) -> Seq {
        last_entry_before(self.before, record)
    }
}

/// Returns the last entry before another, or the head.
pub(crate) fn last_entry_before(before: Option<Seq>, record: &Record) -> Seq {
    before.map_or(record.info.head, |seq| Seq(seq.0.saturating_sub(1)))
}

/// The end of a log, with token counts.
#[derive(Debug, Default)]
pub(crate) struct LogTail {
    /// The entries, oldest first.
    pub(crate) entries: Vec<CountedEntry>,
    /// The number of visible entries before them.
    pub(crate) earlier: u64,
}

impl Session {
    /// Builds the request the model would receive now, section by section.
    pub async fn request(&self, options: &RequestOptions<'_>) -> Result<Request, Error> {
        let record = self.record().await?;
        let checkpoint = self.checkpoint().await?;
        let budget = self
            .tl
            .to_estimated_tokens(options.model, options.token_budget());
        let spans = record.state.verbatim_spans();
        // Concurrently: one waits for the store, the other for the index.
        let (tail, (recalled, recall_error)) = tokio::try_join!(
            self.read_tail(
                options.last_entry(&record),
                &spans,
                options.encoding,
                Some(budget)
            ),
            self.recall_excerpts(options, &record),
        )?;
        let mut documents = self.load_documents(&record).await?;
        documents.extend_from_slice(options.documents);
        let memory = self
            .find_request_facts(options, &record, &tail.entries, &documents)
            .await?;
        let inputs = RequestInputs {
            session: self.id(),
            agent: options.agent,
            documents: &documents,
            memory: &memory,
            record: &record,
            checkpoint: checkpoint
                .as_ref()
                .map(|(entry, checkpoint)| (entry, checkpoint)),
            entries: &tail.entries,
            unloaded_entries: tail.earlier,
            recalled: &recalled,
            message: options.message,
        };
        let mut request =
            throughline_context::build_request(&inputs, options.policy, budget, options.encoding)?;
        if let Some(why) = recall_error {
            let section = request.sections.iter_mut();
            for section in section.filter(|section| section.name == SectionName::Recalled) {
                section.left_out.push(Omission {
                    description: "earlier messages".to_owned(),
                    reason: why.clone(),
                    tokens: None,
                    entries: 0,
                });
            }
        }
        Ok(request)
    }

    /// Finds earlier messages that are relevant to the new one, or returns why that
    /// failed: a failing index must not prevent an answer.
    async fn recall_excerpts(
        &self,
        options: &RequestOptions<'_>,
        record: &Record,
    ) -> Result<(Vec<Excerpt>, Option<String>), Error> {
        let Some(message) = options.message.filter(|_| options.policy.recall) else {
            return Ok((Vec::new(), None));
        };
        match self
            .find_excerpts(
                &message.to_text(),
                record,
                StalenessTolerance::for_request(options),
            )
            .await
        {
            Ok(recalled) => Ok((recalled, None)),
            Err(Error::Recall(error)) => Ok((Vec::new(), Some(error.to_string()))),
            Err(error) => Err(error),
        }
    }

    /// Reads the last entries of these spans up to `last`: all of them, or as many as
    /// may fit into `max_tokens`.
    pub(crate) async fn read_tail(
        &self,
        last: Seq,
        spans: &[Span],
        encoding: Encoding,
        max_tokens: Option<u64>,
    ) -> Result<LogTail, Error> {
        let mut tail = LogTail::default();
        let mut sum = 0;
        let mut limit = FIRST_PAGE;
        for span in spans.iter().rev() {
            let mut to = span.to.unwrap_or(last).min(last);
            while to >= span.from {
                if max_tokens.is_some_and(|max_tokens| sum >= max_tokens) {
                    tail.earlier += to.0 - span.from.0 + 1;
                    break;
                }
                let read = ReadRange {
                    from: span.from,
                    to: Some(to),
                    limit,
                    from_end: true,
                };
                limit = (limit * 2).min(LARGEST_PAGE);
                let page = self.count_tokens(self.read(read).await?, encoding).await?;
                let Some(first) = page.first().map(|counted| counted.entry.seq) else {
                    break;
                };
                sum += page
                    .iter()
                    .map(|c| c.tokens.min(MAX_COUNTED_TOKENS))
                    .sum::<u64>();
                tail.entries.splice(0..0, page);
                to = Seq(first.0 - 1);
            }
        }
        Ok(tail)
    }

    /// Returns entries with their token counts, cached in the store if the encoding is
    /// slow.
    async fn count_tokens(
        &self,
        page: Vec<Entry>,
        encoding: Encoding,
    ) -> Result<Vec<CountedEntry>, Error> {
        let (Some(first), Some(last)) = (page.first(), page.last()) else {
            return Ok(Vec::new());
        };
        if !encoding.is_slow() {
            let counted = page.into_iter().map(|entry| CountedEntry {
                tokens: count_entry_tokens(encoding, &entry),
                entry,
            });
            return Ok(counted.collect());
        }
        let (store, name) = (&self.tl.store, encoding.name());
        let known = store
            .token_counts(&self.reference, name, first.seq, last.seq)
            .await?;
        let mut new = Vec::new();
        let counted = page
            .into_iter()
            .map(|entry| {
                let index = known.binary_search_by_key(&entry.seq, |(seq, _)| *seq);
                let tokens = index.map_or_else(
                    |_| {
                        let tokens = count_entry_tokens(encoding, &entry);
                        new.push((entry.seq, tokens));
                        tokens
                    },
                    |index| known[index].1,
                );
                CountedEntry { entry, tokens }
            })
            .collect();
        if !new.is_empty() {
            store.put_token_counts(&self.reference, name, &new).await?;
        }
        Ok(counted)
    }

    /// Loads the context documents that were set in the session.
    async fn load_documents(&self, record: &Record) -> Result<Vec<ContextDocument>, Error> {
        let mut documents = Vec::new();
        let named = record.state.context.iter();
        let excluded = [POLICY_DOCUMENT, METADATA_DOCUMENT];
        for (name, seq) in named.filter(|(name, _)| !excluded.contains(&name.as_str())) {
            if let Some(text) = self.load_document(*seq).await? {
                let name = name.clone();
                documents.push(ContextDocument { name, text });
            }
        }
        Ok(documents)
    }

    /// Loads the context document that was set at an entry.
    async fn load_document(&self, seq: Seq) -> Result<Option<String>, Error> {
        let entry = self.read(ReadRange::between(seq, seq, 1)).await?.pop();
        Ok(match entry.map(|entry| entry.body) {
            Some(Body::ContextSet {
                content: Some(content),
                ..
            }) => {
                // A string is shown as text, any other value as JSON.
                let text = content.decode::<String>();
                Some(text.unwrap_or_else(|_| content.to_string()))
            }
            _ => None,
        })
    }

    /// Returns the policy that was set for this session, as written.
    pub async fn policy_document(&self) -> Result<Option<String>, Error> {
        self.context_document(POLICY_DOCUMENT).await
    }

    /// Returns a context document of this session, if it exists.
    pub async fn context_document(&self, name: &str) -> Result<Option<String>, Error> {
        match self.record().await?.state.context.get(name) {
            None => Ok(None),
            Some(seq) => self.load_document(*seq).await,
        }
    }

    /// Sets a context document, or removes it.
    pub async fn set_context(&self, document: &str, text: Option<&str>) -> Result<Entry, Error> {
        let content = text.map(throughline_model::Json::of).transpose();
        let content = content.map_err(|source| throughline_store::StoreError::Backend {
            during: "encoding a context document",
            source: source.into(),
        })?;
        let document = document.to_owned();
        self.append(Body::ContextSet { document, content }).await
    }
}
