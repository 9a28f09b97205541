//! Conformance cases for listings and lookups.

use throughline_model::{
    AgentRef, Body, NameSource, NewEntry, Project, ProjectMarker, Role, Seq, SessionRef, Status,
};

use super::{append_body, at, entry_id, header, owner, session_id, session_with};
use crate::{Append, Cursor, ErrorKind, SessionFilter, Store};

async fn list_ids<S: Store>(store: &S, filter: &SessionFilter) -> Vec<String> {
    let page = store.list(&owner(), filter, None, 100).await.unwrap();
    page.items.iter().map(|info| info.id.to_string()).collect()
}

async fn session_active_at<S: Store>(store: &S, id: &str, second: i64) -> SessionRef {
    let session = session_with(store, id, &[]).await;
    let new = NewEntry::text(entry_id(), at(second), Role::User, id);
    store
        .append(&session, Append::unconditional(vec![new]))
        .await
        .unwrap();
    session
}

/// The session with the latest activity is first.
pub async fn latest_activity_comes_first<S: Store>(store: &S) {
    session_active_at(store, "a", 30).await;
    session_active_at(store, "b", 50).await;
    session_active_at(store, "c", 40).await;
    assert_eq!(
        list_ids(store, &SessionFilter::default()).await,
        ["b", "c", "a"]
    );
    session_active_at(store, "d", 60).await;
    let a = owner().session(&session_id("a"));
    let new = NewEntry::text(entry_id(), at(70), Role::User, "again");
    store
        .append(&a, Append::unconditional(vec![new]))
        .await
        .unwrap();
    assert_eq!(
        list_ids(store, &SessionFilter::default()).await,
        ["a", "d", "b", "c"]
    );
}

/// Pages have no gaps or duplicates, and a cursor can be serialized.
pub async fn pages_are_complete_and_stable<S: Store>(store: &S) {
    for n in 0..23 {
        session_active_at(store, &format!("s{n:02}"), 100 + n).await;
    }
    let mut seen = Vec::new();
    let mut after: Option<Cursor> = None;
    loop {
        let page = store
            .list(&owner(), &SessionFilter::default(), after.as_ref(), 5)
            .await
            .unwrap();
        seen.extend(page.items.iter().map(|info| info.id.to_string()));
        // Sessions that become active meanwhile move to the front and do not disturb
        // paging.
        session_active_at(store, &format!("new-{}", seen.len()), 1_000).await;
        match page.next {
            Some(next) => after = Some(next.to_string().parse().unwrap()),
            None => break,
        }
    }
    let expected: Vec<_> = (0..23).rev().map(|n| format!("s{n:02}")).collect();
    assert_eq!(seen, expected);
}

/// Sessions with the same activity time are ordered by id.
pub async fn ties_are_broken_by_id<S: Store>(store: &S) {
    for id in ["b", "a", "c"] {
        session_with(store, id, &[]).await;
    }
    assert_eq!(
        list_ids(store, &SessionFilter::default()).await,
        ["c", "b", "a"]
    );
    let first = store
        .list(&owner(), &SessionFilter::default(), None, 1)
        .await
        .unwrap();
    let rest = store
        .list(&owner(), &SessionFilter::default(), first.next.as_ref(), 5)
        .await
        .unwrap();
    assert_eq!(
        rest.items.iter().map(|c| c.id.as_str()).collect::<Vec<_>>(),
        ["b", "a"]
    );
}

/// Each filter narrows the list, and filters combine.
pub async fn filters_narrow<S: Store>(store: &S) {
    let a = session_active_at(store, "a", 10).await;
    let b = session_active_at(store, "b", 20).await;
    let mut in_project = header("c");
    in_project.project = Some("dir:/work".parse().unwrap());
    in_project.agent = Some(AgentRef {
        name: "pm".into(),
        path: None,
    });
    store.create(&owner(), in_project).await.unwrap();
    let tags = |tags: &[&str]| Body::Tagged {
        tags: tags.iter().map(|t| t.parse().unwrap()).collect(),
    };
    append_body(store, &a, tags(&["x", "y"])).await;
    append_body(store, &b, tags(&["x"])).await;
    append_body(store, &b, Body::Archived).await;

    let with = |tags: &[&str]| SessionFilter {
        tags: tags.iter().map(|tag| tag.parse().unwrap()).collect(),
        ..SessionFilter::default()
    };
    assert_eq!(list_ids(store, &with(&["x"])).await, ["b", "a"]);
    assert_eq!(list_ids(store, &with(&["x", "y"])).await, ["a"]);
    assert!(list_ids(store, &with(&["z"])).await.is_empty());
    let status = |status| SessionFilter {
        status: Some(status),
        ..with(&["x"])
    };
    assert_eq!(list_ids(store, &status(Status::Archived)).await, ["b"]);
    assert_eq!(list_ids(store, &status(Status::Active)).await, ["a"]);
    let agent = SessionFilter {
        agent: Some("pm".into()),
        ..SessionFilter::default()
    };
    assert_eq!(list_ids(store, &agent).await, ["c"]);
    let project = SessionFilter {
        project: Some("dir:/work".parse().unwrap()),
        ..SessionFilter::default()
    };
    assert_eq!(list_ids(store, &project).await, ["c"]);
    let since = SessionFilter {
        since: Some(at(5)),
        ..SessionFilter::default()
    };
    assert_eq!(list_ids(store, &since).await, ["b", "a"]);
    append_body(
        store,
        &a,
        Body::Untagged {
            tags: vec!["x".parse().unwrap()],
        },
    )
    .await;
    assert_eq!(list_ids(store, &with(&["x"])).await, ["b"]);
}

/// Counts match listings.
pub async fn counts_agree_with_lists<S: Store>(store: &S) {
    let a = session_active_at(store, "a", 10).await;
    session_active_at(store, "b", 20).await;
    append_body(store, &a, Body::Archived).await;
    let archived = SessionFilter {
        status: Some(Status::Archived),
        ..SessionFilter::default()
    };
    assert_eq!(
        store
            .count(&owner(), &SessionFilter::default())
            .await
            .unwrap(),
        2
    );
    assert_eq!(store.count(&owner(), &archived).await.unwrap(), 1);
}

/// A session is found by its id, id prefix, key and name.
pub async fn candidates_are_found_by_id_prefix_key_and_name<S: Store>(store: &S) {
    let mut keyed = header("2026-01-01-a");
    keyed.key = Some("bot:7".parse().unwrap());
    store.create(&owner(), keyed).await.unwrap();
    let other = session_with(store, "2026-01-02_b", &[]).await;
    let name = Some("auth".parse().unwrap());
    append_body(
        store,
        &other,
        Body::Renamed {
            name,
            by: NameSource::Person,
        },
    )
    .await;
    let meant = async |text: &str| -> Vec<String> {
        let found = store.find_candidates(&owner(), text, 10).await.unwrap();
        found
            .iter()
            .map(|candidate| candidate.info.id.to_string())
            .collect()
    };
    assert_eq!(meant("2026-01-01-a").await, ["2026-01-01-a"]);
    assert_eq!(meant("2026-01-0").await.len(), 2);
    assert_eq!(meant("bot:7").await, ["2026-01-01-a"]);
    assert_eq!(meant("auth").await, ["2026-01-02_b"]);
    assert!(meant("aut").await.is_empty());
    // SQL wildcards are matched literally.
    assert!(meant("2026-01-02%").await.is_empty());
    assert!(meant("2026-01-01_").await.is_empty());
    store.trash(&other, at(0)).await.unwrap();
    assert!(store.find_candidates(&owner(), "auth", 10).await.unwrap()[0].trashed);
}

/// Exact matches come before prefix matches, however many there are.
pub async fn an_exact_candidate_is_never_crowded_out<S: Store>(store: &S) {
    let exact = session_active_at(store, "conv-5", 1).await;
    for n in 50..80 {
        session_active_at(store, &format!("conv-{n}"), i64::from(n)).await;
    }
    let found = store.find_candidates(&owner(), "conv-5", 3).await.unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(found[0].info.id, exact.id);
    assert_eq!(found[1].info.id, session_id("conv-59"));
}

/// The same key always returns the same session.
pub async fn a_key_gets_or_creates<S: Store>(store: &S) {
    let mut first = header("first");
    first.key = Some("pm-feature-auth".parse().unwrap());
    let mut second = header("second");
    second.key.clone_from(&first.key);
    let made = store.create(&owner(), first).await.unwrap();
    let found = store.create(&owner(), second).await.unwrap();
    assert!(!made.existed && found.existed);
    assert_eq!(found.record.info.id, session_id("first"));
    assert_eq!(
        store
            .count(&owner(), &SessionFilter::default())
            .await
            .unwrap(),
        1
    );
}

/// An id can be used only once.
pub async fn an_id_is_taken_once<S: Store>(store: &S) {
    session_with(store, "s", &["x"]).await;
    let mut other = header("s");
    other.at = at(99);
    let refused = store.create(&owner(), other).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
}

/// Retrying a creation returns the same session.
pub async fn creating_twice_with_one_header_is_one_session<S: Store>(store: &S) {
    let session = session_with(store, "s", &["x"]).await;
    let again = store.create(&owner(), header("s")).await.unwrap();
    assert!(again.existed);
    assert_eq!(again.record, store.record(&session).await.unwrap());
}

/// Projects keep their markers, and putting one again replaces it.
pub async fn projects_are_stored<S: Store>(store: &S) {
    let mut project = Project {
        id: "git:example.org/x".parse().unwrap(),
        name: "x".into(),
        markers: vec![ProjectMarker::Remote("example.org/x".into())],
    };
    store.put_project(&owner(), &project).await.unwrap();
    project.markers.push(ProjectMarker::Folder("/moved".into()));
    store.put_project(&owner(), &project).await.unwrap();
    assert_eq!(store.list_projects(&owner()).await.unwrap(), [project]);
}

/// Forks are found by their origin.
pub async fn children_are_found_by_parent<S: Store>(store: &S) {
    let origin = session_with(store, "origin", &["1"]).await;
    store.fork(&origin, Seq(1), header("child")).await.unwrap();
    let children = SessionFilter {
        parent: Some(session_id("origin")),
        ..SessionFilter::default()
    };
    assert_eq!(list_ids(store, &children).await, ["child"]);
}

/// Internal sessions are not listed among user sessions, but exist.
pub async fn internal_sessions_are_listed_only_on_request<S: Store>(store: &S) {
    session_active_at(store, "2026-01-01-a", 1).await;
    let mut own = header("2026-01-02-b");
    own.key = Some("throughline:memory:owner".parse().unwrap());
    store.create(&owner(), own).await.unwrap();
    let mut like_it = header("2026-01-03-c");
    like_it.key = Some("throughline".parse().unwrap());
    store.create(&owner(), like_it).await.unwrap();
    let meant = async |text: &str| -> usize {
        store
            .find_candidates(&owner(), text, 10)
            .await
            .unwrap()
            .len()
    };
    let with_own = SessionFilter {
        include_internal: true,
        ..SessionFilter::default()
    };

    assert_eq!(list_ids(store, &SessionFilter::default()).await.len(), 2);
    assert_eq!(
        store
            .count(&owner(), &SessionFilter::default())
            .await
            .unwrap(),
        2
    );
    assert_eq!(list_ids(store, &with_own).await.len(), 3);
    assert_eq!(store.count(&owner(), &with_own).await.unwrap(), 3);
    assert_eq!(meant("2026-01-0").await, 2);
    assert_eq!(meant("2026-01-02").await, 0);
    assert_eq!(meant("2026-01-02-b").await, 1);
    assert_eq!(meant("throughline:memory:owner").await, 1);

    let own = owner().session(&session_id("2026-01-02-b"));
    store.trash(&own, at(9)).await.unwrap();
    let trash = |own| SessionFilter {
        scope: crate::SessionScope::Trash,
        include_internal: own,
        ..SessionFilter::default()
    };
    assert_eq!(store.count(&owner(), &trash(false)).await.unwrap(), 0);
    assert_eq!(store.count(&owner(), &trash(true)).await.unwrap(), 1);
}
