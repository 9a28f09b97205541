//! Tests of reranking by a model on this machine and by one across the network.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::tz::TimeZone;
use throughline::context::{Encoding, Policy, SectionName};
use throughline::llm::{ModelEndpoint, ModelSpec, Provider, TimeoutPolicy, resolve_endpoint};
use throughline::recall::{
    Mode, OwnerEncodingCache, RerankError, RerankPassage, RerankQuery, Reranker,
};
use throughline::{
    Content, Digest, EmbeddingReranker, IndexWait, LazyReranker, Message, NewSession,
    RequestOptions, RerankBudget, Role, SearchOptions, SearchResults, Session, Throughline,
};
use throughline_mock_provider::{Fault, MockProvider, Reply, Script};

const UTC: &TimeZone = &TimeZone::UTC;
const MESSAGES: [&str; 3] = [
    "The cache is in Redis and the cache is warm.",
    "Nobody may touch the cache on a Friday.",
    "cache",
];

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work)
}

/// Creates a store in memory with a few messages.
async fn store_with_messages() -> (Throughline, Session) {
    let tl = Throughline::open("memory:").await.unwrap();
    let session = tl.create(NewSession::named("talk").unwrap()).await.unwrap();
    for text in MESSAGES {
        let message = Message::text(Role::User, text);
        session.append(message).await.unwrap();
    }
    (tl, session)
}

fn search_options(typed: &str) -> SearchOptions<'_> {
    SearchOptions {
        query: typed,
        mode: Mode::Hybrid,
        limit: 10,
        typing: false,
        project: None,
        listing: &[],
        zone: UTC,
        index_wait: IndexWait::Unlimited,
    }
}

async fn search(tl: &Throughline, typed: &str) -> SearchResults {
    tl.search(&search_options(typed)).await.unwrap()
}

fn hit_order(results: &SearchResults) -> Vec<u64> {
    let hits = results.found.hits.iter();
    hits.map(|hit| hit.seq.0).collect()
}

/// A reranker that prefers long passages.
#[derive(Debug)]
struct LengthReranker(Arc<AtomicUsize>);

impl Reranker for LengthReranker {
    fn name(&self) -> &'static str {
        "long"
    }

    fn digest(&self) -> Digest {
        Digest::of(b"long")
    }

    #[allow(clippy::cast_precision_loss, reason = "a length of a few words")]
    fn score_passages(
        &self,
        _: &RerankQuery<'_>,
        passages: &[RerankPassage<'_>],
        _: &OwnerEncodingCache<'_>,
        timeout: Duration,
    ) -> Result<Vec<f32>, RerankError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        assert!(!timeout.is_zero());
        let length = |passage: &RerankPassage<'_>| passage.text.len() as f32;
        Ok(passages.iter().map(length).collect())
    }
}

#[test]
fn a_model_is_loaded_on_first_use_and_reranks_searches_and_requests() {
    block_on(async {
        let (tl, session) = store_with_messages().await;
        let loads = Arc::new(AtomicUsize::new(0));
        let compares = Arc::new(AtomicUsize::new(0));
        let (loading, comparing) = (Arc::clone(&loads), Arc::clone(&compares));
        let tl = tl.with_reranker(Some(LazyReranker::new(
            "long",
            RerankBudget::LOCAL,
            move || {
                loading.fetch_add(1, Ordering::Relaxed);
                Ok(Box::new(LengthReranker(comparing)))
            },
        )));
        let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        for (typing, mode) in [(true, Mode::Hybrid), (false, Mode::Text)] {
            let options = SearchOptions {
                typing,
                mode,
                ..search_options("cache")
            };
            let found = tl.search(&options).await.unwrap().found;
            assert_eq!(found.rerank, None);
        }
        assert_eq!(count(&loads), 0, "typing and words need no model");
        let results = search(&tl, "cache").await;
        let compared = results.found.rerank.clone().unwrap();
        assert_eq!((compared.model.as_str(), compared.count), ("long", 3));
        let long = &results.found.hits.iter().find(|hit| hit.seq.0 == 1);
        assert_eq!(long.unwrap().score_parts.contextual, Some(1.0));
        search(&tl, "cache").await;
        assert_eq!((count(&loads), count(&compares)), (1, 2));
        let other = tl.session(session.id()).await.unwrap();
        count_excerpts(&other).await;
        assert_eq!((count(&loads), count(&compares)), (1, 3));
        assert_eq!(tl.take_reranker_failure(), None);
    });
}

/// Returns the number of excerpts in a request.
async fn count_excerpts(session: &Session) -> usize {
    let message = Content::text("What about the cache?");
    let policy = Policy {
        keep: "0 messages".parse().unwrap(),
        ..Policy::default()
    };
    let options = RequestOptions {
        message: Some(&message),
        ..RequestOptions::new(&policy, 10_000, Encoding::Rough)
    };
    let request = session.request(&options).await.unwrap();
    request
        .section(SectionName::Recalled)
        .unwrap()
        .entries
        .len()
}

#[test]
fn a_model_that_cannot_be_loaded_is_reported_once_and_search_continues() {
    block_on(async {
        let (tl, _) = store_with_messages().await;
        let plain = hit_order(&search(&tl, "cache").await);
        let tl = tl.with_reranker(Some(LazyReranker::new(
            "broken",
            RerankBudget::LOCAL,
            || Err("its weights are torn".into()),
        )));
        for _ in 0..3 {
            let results = search(&tl, "cache").await;
            assert_eq!(hit_order(&results), plain);
            let error = results.found.rerank.unwrap().error;
            assert_eq!(error.as_deref(), Some("its weights are torn"));
        }
        assert_eq!(
            tl.take_reranker_failure().as_deref(),
            Some("broken could not rerank the results: its weights are torn")
        );
        search(&tl, "cache").await;
        assert_eq!(tl.take_reranker_failure(), None);
    });
}

fn connection_to(mock: &MockProvider) -> ModelEndpoint {
    let spec = ModelSpec::parse(&format!("base_url={} model=vectors", mock.url())).unwrap();
    let found = resolve_endpoint(&spec, &throughline::llm::ApiKeys::default(), &|_| None);
    found.unwrap().unwrap()
}

fn embedding_reranker(mock: &MockProvider, search: Duration) -> LazyReranker {
    let provider =
        Provider::for_embeddings(connection_to(mock), TimeoutPolicy::default(), 1).unwrap();
    let budget = RerankBudget {
        search,
        request: search,
    };
    LazyReranker::new("vectors", budget, move || {
        Ok(Box::new(EmbeddingReranker::new(provider)))
    })
}

const LONG_BUDGET: Duration = Duration::from_secs(60);

#[test]
fn each_text_is_sent_to_the_provider_once() {
    let mock = MockProvider::start(Script::default()).unwrap();
    block_on(async {
        let (tl, session) = store_with_messages().await;
        let tl = tl.with_reranker(Some(embedding_reranker(&mock, LONG_BUDGET)));
        let first = search(&tl, "who may touch the cache on Friday").await;
        let similarities = first
            .found
            .hits
            .iter()
            .map(|hit| hit.score_parts.contextual);
        assert!(similarities.clone().all(|similarity| similarity.is_some()));
        let best = &first.found.hits.iter().find(|hit| hit.seq.0 == 2).unwrap();
        assert_eq!(
            best.score_parts.contextual,
            Some(1.0),
            "it shares most words"
        );
        let requests = mock.requests();
        assert_eq!(requests.len(), 1);
        let mut sent = requests[0].texts();
        assert_eq!(sent.remove(0), "who may touch the cache on Friday");
        sent.sort_unstable();
        let mut expected = MESSAGES;
        expected.sort_unstable();
        assert_eq!(sent, expected, "the hits, and nothing else");
        let again = search(&tl, "who may touch the cache on Friday").await;
        assert_eq!(again.found, first.found);
        assert_eq!(mock.requests().len(), 1, "all vectors are cached");
        session
            .append(Message::text(Role::User, "The cache again"))
            .await
            .unwrap();
        search(&tl, "cache").await;
        let requests = mock.requests();
        let mut sent = requests[1].texts();
        sent.sort_unstable();
        assert_eq!(sent, ["The cache again"], "the query is cached already");
    });
}

#[test]
fn provider_faults_are_reported_and_do_not_change_the_results() {
    let faults = [
        (Fault::WrongKey, "rejected the API key"),
        (Fault::NoSuchModel, "has no model \"vectors\""),
        (Fault::RateLimited { retry_after: None }, "rate limited by"),
        (Fault::Status(500), "is not available"),
        (Fault::BadJson, "it is not JSON"),
        (Fault::HtmlPage, "it is not JSON"),
    ];
    for (fault, expected_text) in faults {
        let mock = MockProvider::start(Script::replies([Reply::fault(fault.clone())])).unwrap();
        block_on(async {
            let (tl, _) = store_with_messages().await;
            let plain = hit_order(&search(&tl, "cache").await);
            let tl = tl.with_reranker(Some(embedding_reranker(&mock, LONG_BUDGET)));
            assert_eq!(hit_order(&search(&tl, "cache").await), plain, "{fault:?}");
            let failure = tl.take_reranker_failure().unwrap();
            assert!(failure.contains(expected_text), "{fault:?}: {failure}");
            // The next search works, and there is nothing to report.
            let compared = search(&tl, "cache").await.found.rerank.unwrap();
            assert_eq!((compared.count, compared.error), (3, None));
            assert_eq!(tl.take_reranker_failure(), None);
        });
    }
}

#[test]
fn a_slow_or_unreachable_provider_does_not_delay_a_search() {
    let mock = MockProvider::start(Script::from_fn(|_| Reply::fault(Fault::Hang))).unwrap();
    block_on(async {
        let (tl, session) = store_with_messages().await;
        let plain = hit_order(&search(&tl, "cache").await);
        let hung = tl
            .clone()
            .with_reranker(Some(embedding_reranker(&mock, Duration::from_millis(50))));
        assert_eq!(hit_order(&search(&hung, "cache").await), plain);
        let failure = hung.take_reranker_failure().unwrap();
        assert!(failure.ends_with("it took longer than 0.05 s"), "{failure}");
        let other = hung.session(session.id()).await.unwrap();
        assert!(count_excerpts(&other).await > 0);
        let gone = MockProvider::start(Script::default()).unwrap();
        let gone_for_good = embedding_reranker(&gone, LONG_BUDGET);
        drop(gone);
        let tl = tl.with_reranker(Some(gone_for_good));
        assert_eq!(hit_order(&search(&tl, "cache").await), plain);
        let failure = tl.take_reranker_failure().unwrap();
        assert!(failure.contains("is unreachable"), "{failure}");
    });
}

#[test]
fn a_provider_without_embeddings_is_refused_before_anything_is_sent() {
    let spec = ModelSpec::parse("base_url=http://127.0.0.1:9 model=x").unwrap();
    let mut at = resolve_endpoint(&spec, &throughline::llm::ApiKeys::default(), &|_| None)
        .unwrap()
        .unwrap();
    at.provider = "anthropic".to_owned();
    at.protocol = throughline::llm::ApiProtocol::Anthropic;
    let error = Provider::for_embeddings(at, TimeoutPolicy::default(), 1).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("anthropic embeddings are not supported")
    );
}
