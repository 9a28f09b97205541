//! What the model would be sent now, from a log of any length.
//!
//! Reads the record, the checkpoint in force and as much of the tail as fits: the cost
//! follows from the request, not from the history.

use throughline_context::{
    Counted, Document, Encoding, Excerpt, LeftOut, Material, Policy, Request, SectionName,
    entry_tokens,
};
use throughline_model::{Body, Content, Entry, Record, Seq, Span};
use throughline_store::Read;

use crate::recall::MayLack;
use crate::{Error, Session};

/// Entries read at first; each page after it is twice as long, up to the largest, so that
/// little is read for a small request and few times for a large one.
const FIRST_PAGE: usize = 32;
const LARGEST_PAGE: usize = 1_024;
/// More than this of one entry does not make the rest unnecessary: it may be elided.
const COUNTED_AS: u64 = 2_000;

/// The context document that says by which policy a session's requests are made, and is
/// not part of them: `bot`, or `default; window=50000`.
pub const POLICY_DOCUMENT: &str = "policy";

/// The context document that holds what programs note about a session, as an object of
/// texts, and is not part of its requests.
pub const METADATA_DOCUMENT: &str = "metadata:openai";

/// How to build a request.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
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
    pub documents: &'a [Document],
    /// The new message.
    pub message: Option<&'a Content>,
    /// The entry the new message has been appended as: the request is made from what
    /// came before it.
    pub before: Option<Seq>,
    /// The model that will be asked, whose own counts have been learned from.
    pub model: Option<&'a str>,
}

impl<'a> Asking<'a> {
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
    pub fn allowance(&self) -> u64 {
        let window = self.policy.window(self.window);
        self.budget.map_or(window, |budget| budget.min(window))
    }

    /// The last entry of the log that counts.
    pub(crate) fn last(&self, record: &Record) -> Seq {
        upto(self.before, record)
    }
}

/// The last entry before another, or the head.
pub(crate) fn upto(before: Option<Seq>, record: &Record) -> Seq {
    before.map_or(record.card.head, |seq| Seq(seq.0.saturating_sub(1)))
}

/// A part of a log with its costs.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The entries, oldest first.
    pub(crate) entries: Vec<Counted>,
    /// How many visible ones come before them.
    pub(crate) earlier: u64,
}

impl Session {
    /// What the model would be sent now, section by section.
    pub async fn request(&self, asking: &Asking<'_>) -> Result<Request, Error> {
        let record = self.record().await?;
        let checkpoint = self.checkpoint().await?;
        let budget = self.tl.as_counted_here(asking.model, asking.allowance());
        let spans = record.standing.uncovered();
        // At once: the one waits for the store, the other for the index.
        let (tail, (recalled, unable)) = tokio::try_join!(
            self.tail_of(asking.last(&record), &spans, asking.encoding, Some(budget)),
            self.recalled(asking, &record),
        )?;
        let mut documents = self.documents(&record).await?;
        documents.extend_from_slice(asking.documents);
        let memory = self
            .memory_for(asking, &record, &tail.entries, &documents)
            .await?;
        let material = Material {
            session: self.id(),
            agent: asking.agent,
            documents: &documents,
            memory: &memory,
            record: &record,
            checkpoint: checkpoint
                .as_ref()
                .map(|(entry, checkpoint)| (entry, checkpoint)),
            entries: &tail.entries,
            earlier: tail.earlier,
            recalled: &recalled,
            message: asking.message,
        };
        let mut request =
            throughline_context::build(&material, asking.policy, budget, asking.encoding)?;
        if let Some(why) = unable {
            let section = request.sections.iter_mut();
            for section in section.filter(|section| section.name == SectionName::Recalled) {
                section.left_out.push(LeftOut {
                    what: "what was said before".to_owned(),
                    why: why.clone(),
                    tokens: None,
                    entries: 0,
                });
            }
        }
        Ok(request)
    }

    /// What was said before that bears on the new message, or why that cannot be told: an
    /// index that fails is no reason not to answer.
    async fn recalled(
        &self,
        asking: &Asking<'_>,
        record: &Record,
    ) -> Result<(Vec<Excerpt>, Option<String>), Error> {
        let Some(message) = asking.message.filter(|_| asking.policy.recall) else {
            return Ok((Vec::new(), None));
        };
        match self
            .excerpts(&message.to_text(), record, MayLack::of(asking))
            .await
        {
            Ok(recalled) => Ok((recalled, None)),
            Err(Error::Recall(error)) => Ok((Vec::new(), Some(error.to_string()))),
            Err(error) => Err(error),
        }
    }

    /// The last of these stretches up to an entry, as much as may fit into `enough`
    /// tokens, or all.
    pub(crate) async fn tail_of(
        &self,
        last: Seq,
        spans: &[Span],
        encoding: Encoding,
        enough: Option<u64>,
    ) -> Result<Tail, Error> {
        let mut tail = Tail::default();
        let mut sum = 0;
        let mut limit = FIRST_PAGE;
        for span in spans.iter().rev() {
            let mut to = span.to.unwrap_or(last).min(last);
            while to >= span.from {
                if enough.is_some_and(|enough| sum >= enough) {
                    tail.earlier += to.0 - span.from.0 + 1;
                    break;
                }
                let read = Read {
                    from: span.from,
                    to: Some(to),
                    limit,
                    from_end: true,
                };
                limit = (limit * 2).min(LARGEST_PAGE);
                let page = self.counted(self.read(read).await?, encoding).await?;
                let Some(first) = page.first().map(|counted| counted.entry.seq) else {
                    break;
                };
                sum += page.iter().map(|c| c.tokens.min(COUNTED_AS)).sum::<u64>();
                tail.entries.splice(0..0, page);
                to = Seq(first.0 - 1);
            }
        }
        Ok(tail)
    }

    /// Entries with what they cost: as known, or counted now and kept, where counting is
    /// worth it.
    async fn counted(&self, page: Vec<Entry>, encoding: Encoding) -> Result<Vec<Counted>, Error> {
        let (Some(first), Some(last)) = (page.first(), page.last()) else {
            return Ok(Vec::new());
        };
        if !encoding.is_slow() {
            let counted = page.into_iter().map(|entry| Counted {
                tokens: entry_tokens(encoding, &entry),
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
                        let tokens = entry_tokens(encoding, &entry);
                        new.push((entry.seq, tokens));
                        tokens
                    },
                    |place| known[place].1,
                );
                Counted { entry, tokens }
            })
            .collect();
        if !new.is_empty() {
            store.put_token_counts(&self.reference, name, &new).await?;
        }
        Ok(counted)
    }

    /// The context documents that were set in the session.
    async fn documents(&self, record: &Record) -> Result<Vec<Document>, Error> {
        let mut documents = Vec::new();
        let named = record.standing.context.iter();
        let apart = [POLICY_DOCUMENT, METADATA_DOCUMENT];
        for (name, seq) in named.filter(|(name, _)| !apart.contains(&name.as_str())) {
            if let Some(text) = self.document(*seq).await? {
                let name = name.clone();
                documents.push(Document { name, text });
            }
        }
        Ok(documents)
    }

    /// What the context document set at an entry says.
    async fn document(&self, seq: Seq) -> Result<Option<String>, Error> {
        let entry = self.read(Read::between(seq, seq, 1)).await?.pop();
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
        match self.record().await?.standing.context.get(name) {
            None => Ok(None),
            Some(seq) => self.document(*seq).await,
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
