//! What the model would be sent now, from a log of any length.
//!
//! Reads the record, the checkpoint in force and as much of the tail as fits: the cost
//! follows from the request, not from the history.

use throughline_context::{
    ContextDocument, CountedEntry, Encoding, Excerpt, Omission, Policy, Request, RequestInputs,
    SectionName, count_entry_tokens,
};
use throughline_model::{Body, Content, Entry, Record, Seq, Span};
use throughline_store::ReadRange;

use crate::retrieval::StalenessTolerance;
use crate::{Error, Session};

/// Entries read at first; each page after it is twice as long, up to the largest, so that
/// little is read for a small request and few times for a large one.
const FIRST_PAGE: usize = 32;
const LARGEST_PAGE: usize = 1_024;
/// More than this of one entry does not make the rest unnecessary: it may be elided.
const MAX_COUNTED_TOKENS: u64 = 2_000;

/// The context document that says by which policy a session's requests are made, and is
/// not part of them: `bot`, or `default; window=50000`.
pub const POLICY_DOCUMENT: &str = "policy";

/// The context document that holds what programs note about a session, as an object of
/// texts, and is not part of its requests.
pub const METADATA_DOCUMENT: &str = "metadata:openai";

/// How to build a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestOptions<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The most tokens, where less than the policy's window.
    pub budget: Option<u64>,
    /// The model's window.
    pub window: u64,
    /// How tokens are counted.
    pub encoding: Encoding,
    /// What the agent is and does.
    pub agent: Option<&'a str>,
    /// Project context, besides what was set in the session.
    pub documents: &'a [ContextDocument],
    /// The new message.
    pub message: Option<&'a Content>,
    /// The entry the new message has been appended as: the request is made from what
    /// came before it.
    pub before: Option<Seq>,
    /// The model that will be asked, whose own counts have been learned from.
    pub model: Option<&'a str>,
}

impl<'a> RequestOptions<'a> {
    /// By a policy, for a model with this window: of what was said alone, and all of it that
    /// fits.
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

    /// How many tokens the request may have.
    pub fn token_budget(&self) -> u64 {
        let window = self.policy.effective_window(self.window);
        self.budget.map_or(window, |budget| budget.min(window))
    }

    /// The last entry of the log that counts.
    pub(crate) fn last_entry(&self, record: &Record) -> Seq {
        last_entry_before(self.before, record)
    }
}

/// The last entry before another, or the head.
pub(crate) fn last_entry_before(before: Option<Seq>, record: &Record) -> Seq {
    before.map_or(record.info.head, |seq| Seq(seq.0.saturating_sub(1)))
}

/// A part of a log with its costs.
#[derive(Debug, Default)]
pub(crate) struct LogTail {
    /// The entries, oldest first.
    pub(crate) entries: Vec<CountedEntry>,
    /// How many visible ones come before them.
    pub(crate) earlier: u64,
}

impl Session {
    /// What the model would be sent now, section by section.
    pub async fn request(&self, asking: &RequestOptions<'_>) -> Result<Request, Error> {
        let record = self.record().await?;
        let checkpoint = self.checkpoint().await?;
        let budget = self
            .tl
            .to_estimated_tokens(asking.model, asking.token_budget());
        let spans = record.state.verbatim_spans();
        // At once: the one waits for the store, the other for the index.
        let (tail, (recalled, unable)) = tokio::try_join!(
            self.read_tail(
                asking.last_entry(&record),
                &spans,
                asking.encoding,
                Some(budget)
            ),
            self.recall_excerpts(asking, &record),
        )?;
        let mut documents = self.load_documents(&record).await?;
        documents.extend_from_slice(asking.documents);
        let memory = self
            .find_request_facts(asking, &record, &tail.entries, &documents)
            .await?;
        let material = RequestInputs {
            session: self.id(),
            agent: asking.agent,
            documents: &documents,
            memory: &memory,
            record: &record,
            checkpoint: checkpoint
                .as_ref()
                .map(|(entry, checkpoint)| (entry, checkpoint)),
            entries: &tail.entries,
            unloaded_entries: tail.earlier,
            recalled: &recalled,
            message: asking.message,
        };
        let mut request =
            throughline_context::build_request(&material, asking.policy, budget, asking.encoding)?;
        if let Some(why) = unable {
            let section = request.sections.iter_mut();
            for section in section.filter(|section| section.name == SectionName::Recalled) {
                section.left_out.push(Omission {
                    description: "what was said before".to_owned(),
                    reason: why.clone(),
                    tokens: None,
                    entries: 0,
                });
            }
        }
        Ok(request)
    }

    /// What was said before that bears on the new message, or why that cannot be told: an
    /// index that fails is no reason not to answer.
    async fn recall_excerpts(
        &self,
        asking: &RequestOptions<'_>,
        record: &Record,
    ) -> Result<(Vec<Excerpt>, Option<String>), Error> {
        let Some(message) = asking.message.filter(|_| asking.policy.recall) else {
            return Ok((Vec::new(), None));
        };
        match self
            .find_excerpts(
                &message.to_text(),
                record,
                StalenessTolerance::for_request(asking),
            )
            .await
        {
            Ok(recalled) => Ok((recalled, None)),
            Err(Error::Recall(error)) => Ok((Vec::new(), Some(error.to_string()))),
            Err(error) => Err(error),
        }
    }

    /// The last of these stretches up to an entry, as much as may fit into `enough`
    /// tokens, or all.
    pub(crate) async fn read_tail(
        &self,
        last: Seq,
        spans: &[Span],
        encoding: Encoding,
        enough: Option<u64>,
    ) -> Result<LogTail, Error> {
        let mut tail = LogTail::default();
        let mut sum = 0;
        let mut limit = FIRST_PAGE;
        for span in spans.iter().rev() {
            let mut to = span.to.unwrap_or(last).min(last);
            while to >= span.from {
                if enough.is_some_and(|enough| sum >= enough) {
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

    /// Entries with what they cost: as known, or counted now and kept, where counting is
    /// worth it.
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
                let place = known.binary_search_by_key(&entry.seq, |(seq, _)| *seq);
                let tokens = place.map_or_else(
                    |_| {
                        let tokens = count_entry_tokens(encoding, &entry);
                        new.push((entry.seq, tokens));
                        tokens
                    },
                    |place| known[place].1,
                );
                CountedEntry { entry, tokens }
            })
            .collect();
        if !new.is_empty() {
            store.put_token_counts(&self.reference, name, &new).await?;
        }
        Ok(counted)
    }

    /// The context documents that were set in the session.
    async fn load_documents(&self, record: &Record) -> Result<Vec<ContextDocument>, Error> {
        let mut documents = Vec::new();
        let named = record.state.context.iter();
        let apart = [POLICY_DOCUMENT, METADATA_DOCUMENT];
        for (name, seq) in named.filter(|(name, _)| !apart.contains(&name.as_str())) {
            if let Some(text) = self.load_document(*seq).await? {
                let name = name.clone();
                documents.push(ContextDocument { name, text });
            }
        }
        Ok(documents)
    }

    /// What the context document set at an entry says.
    async fn load_document(&self, seq: Seq) -> Result<Option<String>, Error> {
        let entry = self.read(ReadRange::between(seq, seq, 1)).await?.pop();
        Ok(match entry.map(|entry| entry.body) {
            Some(Body::ContextSet {
                content: Some(content),
                ..
            }) => {
                // A text is shown as it is, anything else as the JSON it is.
                let text = content.decode::<String>();
                Some(text.unwrap_or_else(|_| content.to_string()))
            }
            _ => None,
        })
    }

    /// The policy that was set for this session, as it was written.
    pub async fn policy_document(&self) -> Result<Option<String>, Error> {
        self.context_document(POLICY_DOCUMENT).await
    }

    /// What a context document of this session says, where there is one.
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
