//! Demo data: sessions of a small shop with tool calls, nested forks, a compaction, tags, pins and
//! memory, and a model that answers.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "shared by several targets that each use part of it; may panic"
)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::SignedDuration;
use throughline::context::{ContextDocument, Policy};
use throughline::llm::{
    ApiProtocol, ModelEndpoint, ModelSummarizer, Provider, Secret, TimeoutPolicy,
};
use throughline::{
    Block, Body, Checkpoint, ConflictPolicy, Content, Expect, Json, MemoryScope, Message, NewFact,
    NewSession, Project, ProjectMarker, Responder, Role, Seq, Session, Summary, Throughline,
    ToolCall, ToolResult, Usage,
};
use throughline_mock_provider::MockProvider;
use throughline_server::{ResponderChoice, ResponderError, ResponderRegistry};

/// A registry with one model on a mock provider.
#[derive(Clone, Debug)]
pub(crate) struct MockResponderRegistry {
    model: Arc<Provider>,
}

impl MockResponderRegistry {
    /// Creates a registry that answers with this mock provider.
    pub(crate) fn new(mock: &MockProvider) -> Self {
        let at = ModelEndpoint {
            provider: "anthropic".to_owned(),
            model: "claude-sonnet-4-5".to_owned(),
            base_url: format!("{}/v1/", mock.url()),
            key: Secret::new("of-the-demo"),
            key_source: None,
            protocol: ApiProtocol::Anthropic,
            window: Some(200_000),
        };
        let timing = TimeoutPolicy {
            retries: 0,
            idle: Duration::from_secs(30),
            ..TimeoutPolicy::default()
        };
        Self {
            model: Arc::new(Provider::new(at, timing, 7).unwrap()),
        }
    }
}

#[async_trait]
impl ResponderRegistry for MockResponderRegistry {
    async fn responder(
        &self,
        _: Option<&Session>,
        _: &ResponderChoice,
    ) -> Result<Responder, ResponderError> {
        Ok(Responder {
            model: Some(self.model.clone()),
            agent: Some("You help with the code of a small shop. Answer briefly, in whole sentences; show code where it says more than words. Ask before you change what was decided.".to_owned()),
            documents: vec![ContextDocument {
                name: "AGENTS.md".to_owned(),
                text: "The API is in `src/`, its tests beside it. `just test` runs them, `just lint` must be clean. Migrations are never changed once they are merged. Amounts are integers in cents. Nothing is logged that a customer typed.".to_owned(),
            }],
            window: 1_500,
            policy: Policy {
                recall: false,
                ..Policy::default()
            },
            summarizer: Some(Arc::new(ModelSummarizer::new(self.model.clone()))),
            ..Responder::offline()
        })
    }

    fn models(&self) -> Vec<String> {
        vec!["anthropic/claude-sonnet-4-5".to_owned()]
    }
}

/// Appends an entry dated this many minutes ago.
async fn append_at(
    session: &Session,
    tl: &Throughline,
    minutes: i64,
    body: impl Into<Body>,
) -> Seq {
    let mut entry = session.new_entry(body);
    entry.at = tl.now() - SignedDuration::from_mins(minutes);
    let appended = session.append_all(vec![entry], Expect::Any, ConflictPolicy::Reject);
    appended.await.unwrap().entries[0].seq
}

fn text_answer(text: &str, input: u64, output: u64) -> Message {
    block_answer(vec![Block::Text(text.to_owned())], input, output)
}

fn block_answer(blocks: Vec<Block>, input: u64, output: u64) -> Message {
    Message {
        model: Some("claude-sonnet-4-5".to_owned()),
        provider: Some("anthropic".to_owned()),
        usage: Some(Usage {
            input,
            output,
            cache_read: input * 3 / 5,
            cache_write: 0,
        }),
        latency_ms: Some(900 + output * 11),
        ..Message::new(Role::Assistant, Content(blocks))
    }
}

fn tool_call(id: &str, name: &str, input: &serde_json::Value) -> Block {
    Block::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        input: Json::of(input).unwrap(),
    })
}

fn tool_result(id: &str, text: &str, is_error: bool) -> Message {
    let result = ToolResult {
        call_id: id.to_owned(),
        content: Content::text(text),
        is_error,
    };
    Message::new(Role::Tool, Content(vec![Block::ToolResult(result)]))
}

const BUCKET: &str = "A **token bucket** in Redis does it, one key a user:

```lua
local tokens = tonumber(redis.call('HGET', KEYS[1], 'tokens') or ARGV[1])
local now = tonumber(ARGV[3])
local last = tonumber(redis.call('HGET', KEYS[1], 'at') or now)
tokens = math.min(ARGV[1], tokens + (now - last) * ARGV[2])
if tokens < 1 then return 0 end
redis.call('HSET', KEYS[1], 'tokens', tokens - 1, 'at', now)
return 1
```

- bursts of up to 100 pass, floods do not
- the script runs atomically, so two servers never both take the last token

| way | exact | memory a user |
|---|---|---|
| token bucket | nearly | 2 fields |
| sliding window | yes | one entry a request |
";

/// Fills a store; returns the session with the most content.
pub(crate) async fn fill_store(tl: &Throughline) -> Session {
    let project = Project {
        id: "git:example.org/shop/api".parse().unwrap(),
        name: "shop-api".to_owned(),
        markers: vec![ProjectMarker::Remote("example.org/shop/api".to_owned())],
    };
    tl.store().put_project(tl.owner(), &project).await.unwrap();
    let new = |name: &str| NewSession {
        project: Some(project.id.clone()),
        at: Some(tl.now() - SignedDuration::from_hours(30)),
        ..NewSession::named(name).unwrap()
    };

    let small = [
        (
            "billing-export",
            "billing csv",
            "Export invoices as CSV, one row a line item",
            "Done in `src/export.rs`: amounts are in cents and the header names the currency.",
            2_900,
        ),
        (
            "ci-flakes",
            "ci",
            "Why does the checkout test fail every tenth run?",
            "It races the mail worker. Waiting for the outbox instead of the clock makes it pass 200 of 200.",
            1_700,
        ),
        (
            "search-relevance",
            "search",
            "Customers type \"tshirt\" and find nothing",
            "The analyzer keeps the hyphen of *t-shirt*. A synonym rule and a folded field find both.",
            1_300,
        ),
        (
            "postgres-upgrade",
            "db",
            "Plan the move from Postgres 13 to 16",
            "Logical replication, then a switch of one minute. Three extensions need newer versions first.",
            800,
        ),
        (
            "onboarding-mail",
            "",
            "Make the welcome mail half as long",
            "Here it is in 62 words, with one link instead of four.",
            400,
        ),
        (
            "login-after-an-hour",
            "auth bug",
            "Login fails after an hour",
            "The refresh token was rotated twice. Requests that race now share one refresh.",
            190,
        ),
    ];
    for (name, tags, question, answered, minutes) in small {
        let session = tl.create(new(name)).await.unwrap();
        append_at(&session, tl, minutes, Message::text(Role::User, question)).await;
        append_at(&session, tl, minutes - 1, text_answer(answered, 2_100, 140)).await;
        let tags: Vec<_> = tags
            .split_whitespace()
            .map(|tag| tag.parse().unwrap())
            .collect();
        if !tags.is_empty() {
            append_at(&session, tl, minutes - 1, Body::Tagged { tags }).await;
        }
        if name == "billing-export" {
            append_at(&session, tl, minutes - 2, Body::Archived).await;
        }
    }
    let gone = tl.create(new("scratch")).await.unwrap();
    append_at(&gone, tl, 600, Message::text(Role::User, "just trying")).await;
    tl.trash(gone.id()).await.unwrap();

    let main = create_limiter_session(tl, new("rate-limiter")).await;
    let fork = main
        .fork(Some(Seq(8)), new("sliding-window"))
        .await
        .unwrap()
        .session;
    append_at(
        &fork,
        tl,
        60,
        Message::text(Role::User, "What if we used a sliding window instead?"),
    )
    .await;
    append_at(
        &fork,
        tl,
        59,
        text_answer(
            "Exact, at the price of a sorted set a user: about 8 kB for each who uses all of it.",
            5_400,
            210,
        ),
    )
    .await;
    let inner = fork
        .fork(None, new("sliding-window-approximate"))
        .await
        .unwrap()
        .session;
    append_at(
        &inner,
        tl,
        40,
        Message::text(Role::User, "And with two counters, weighted by time?"),
    )
    .await;
    append_at(
        &inner,
        tl,
        39,
        text_answer(
            "Within 1 % of exact for even traffic, and as small as the bucket.",
            6_100,
            160,
        ),
    )
    .await;

    let memory = tl.memory(MemoryScope::Project(project.id.clone()));
    for fact in [
        "Redis listens on port 6380, not 6379",
        "Amounts are integers, in cents",
        "Tests run with `just test`",
    ] {
        memory.add(NewFact::from_person(fact)).await.unwrap();
    }
    let mut proposed = NewFact::from_person("The limit is 100 requests a minute per user");
    proposed.proposed = true;
    "claude-sonnet-4-5".clone_into(&mut proposed.by);
    memory.add(proposed).await.unwrap();
    let own = tl.memory(MemoryScope::Owner);
    own.add(NewFact::from_person("Answer in British English"))
        .await
        .unwrap();
    main
}

/// A longer session with tool calls and a compaction.
async fn create_limiter_session(tl: &Throughline, new: NewSession) -> Session {
    let main = tl.create(new).await.unwrap();
    let say = |text: &'static str| Message::text(Role::User, text);
    append_at(
        &main,
        tl,
        180,
        say("Let's limit requests to 100 a minute per user. What is there already?"),
    )
    .await;
    let read = serde_json::json!({"path": "src/middleware.rs", "lines": "1-80"});
    append_at(
        &main,
        tl,
        179,
        block_answer(
            vec![
                Block::Text("I'll look at the middleware first.".to_owned()),
                tool_call("c1", "read_file", &read),
            ],
            1_240,
            60,
        ),
    )
    .await;
    append_at(&main, tl, 179, tool_result("c1", "pub fn stack() -> Stack {\n    Stack::new()\n        .with(Trace)\n        .with(Auth)\n}\n", false)).await;
    append_at(&main, tl, 178, text_answer(BUCKET, 2_900, 420)).await;
    append_at(
        &main,
        tl,
        170,
        say("Token bucket, please. Put it after `Auth`."),
    )
    .await;
    let run = serde_json::json!({"command": "cargo test -p api limiter"});
    append_at(
        &main,
        tl,
        169,
        block_answer(vec![tool_call("c2", "shell", &run)], 3_800, 90),
    )
    .await;
    append_at(
        &main,
        tl,
        168,
        tool_result(
            "c2",
            "error[E0433]: failed to resolve: use of undeclared crate `redis`\n",
            true,
        ),
    )
    .await;
    append_at(
        &main,
        tl,
        166,
        text_answer(
            "The crate was missing from `api`. With it the tests pass: **12 passed**, 0 failed.",
            4_600,
            180,
        ),
    )
    .await;
    append_at(
        &main,
        tl,
        150,
        Body::Decided {
            text: "Token bucket in Redis, after Auth".into(),
        },
    )
    .await;
    append_at(
        &main,
        tl,
        140,
        Body::Tagged {
            tags: vec!["api".parse().unwrap(), "redis".parse().unwrap()],
        },
    )
    .await;
    append_at(
        &main,
        tl,
        120,
        say("What do clients see when they are over it?"),
    )
    .await;
    append_at(&main, tl, 119, text_answer("`429` with `Retry-After` in whole seconds, and the same headers on every answer:\n\n1. `RateLimit-Limit`\n2. `RateLimit-Remaining`\n3. `RateLimit-Reset`", 6_900, 240)).await;
    append_at(
        &main,
        tl,
        100,
        Checkpoint {
            covers: Seq(8),
            summary: Summary {
                background: "The shop's API gets a rate limit of 100 requests a minute per user."
                    .into(),
                completed: vec![
                    "Token bucket as a Lua script in Redis".into(),
                    "Middleware placed after Auth; 12 tests pass".into(),
                ],
                pending: vec!["Headers that tell clients what is left".into()],
                decisions: vec!["Token bucket, not a sliding window".into()],
                facts: vec!["Redis listens on port 6380".into()],
                files_touched: vec![
                    "src/middleware.rs".into(),
                    "src/limiter.rs".into(),
                    "Cargo.toml".into(),
                ],
                open_tasks: vec!["Load test with 1,000 users".into()],
                ..Summary::default()
            },
            by: "claude-sonnet-4-5".into(),
            messages: 8,
            oldest: None,
            newest: None,
            usage: Some(Usage {
                input: 7_400,
                output: 310,
                ..Usage::default()
            }),
        },
    )
    .await;
    append_at(
        &main,
        tl,
        99,
        Body::Pinned {
            text: "Limits are per user, never per address".into(),
        },
    )
    .await;
    for (minutes, question, answer, input) in [
        (
            80,
            "Does the bucket survive a restart of Redis?",
            "It starts full, which errs on the side of the customer.",
            3_100_u64,
        ),
        (
            61,
            "And if Redis is down?",
            "Requests pass and a metric counts them; a limiter must not take the shop down.",
            3_600,
        ),
        (
            30,
            "Write the load test.",
            "`bench/limiter.js`: 1,000 users for five minutes. p99 of the check is **1.8 ms**.",
            4_800,
        ),
    ] {
        append_at(&main, tl, minutes, Message::text(Role::User, question)).await;
        append_at(&main, tl, minutes - 1, text_answer(answer, input, 190)).await;
    }
    append_at(&main, tl, 12, say("Summarize what is left to do.")).await;
    append_at(&main, tl, 11, text_answer("Two things:\n\n- [x] load test\n- [ ] headers on cached answers\n- [ ] a page in the docs for people who hit the limit", 5_200, 120)).await;
    main
}
