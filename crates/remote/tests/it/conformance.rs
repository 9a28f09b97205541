//! Runs the store conformance suite against a remote store.
//!
//! The suite uses several owners. Each has a token, and the store holds all of them. The parts
//! about tokens and maintenance are not supported remotely and are left out.

use throughline_model::TokenRole;
use throughline_remote::RemoteStore;
use throughline_store::conformance::Fixture;
use throughline_store::conformance::random::{Operation, assert_answers_as_memory};
use throughline_store::{random_conformance, session_conformance};

use crate::harness::{TestServer, open};

async fn fixture() -> Fixture<RemoteStore> {
    let served = TestServer::start().await;
    let token = served.create_token("local", TokenRole::User).await;
    let mut store = open(served.address, &token).await.unwrap();
    for other in ["mallory", "nobody", "other"] {
        let token = served.create_token(other, TokenRole::User).await;
        store = store.with_owner_token(&token).await.unwrap();
    }
    Fixture {
        store,
        guard: Box::new(served),
    }
}

session_conformance!(fixture().await);

/// Asserts that every answer equals that of the in-memory store, and that the server's store is
/// sound.
async fn assert_agrees_and_is_sound(fixture: &Fixture<RemoteStore>, ops: &[Operation]) {
    assert_answers_as_memory(&fixture.store, ops).await;
    let served: &TestServer = fixture.guard.downcast_ref().unwrap();
    let report = served.tl.check(&|_, _| ()).await.unwrap();
    assert_eq!(report.findings, []);
}

random_conformance!(fixture().await, assert_agrees_and_is_sound);
