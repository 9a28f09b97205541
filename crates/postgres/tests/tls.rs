//! Encryption on the way to the database, with a real server and certificates of our own.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{birth, owner, run};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use throughline_cluster::{Cluster, Programs};
use throughline_postgres::{Options, PostgresStore};
use throughline_store::{LogStore, StoreError};

/// A server that encrypts, and the certificate of who signed for it.
struct Encrypting {
    cluster: Cluster,
    root: String,
    /// Somebody else's root.
    stranger: String,
}

fn authority() -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let root = params.self_signed(&key).unwrap().pem();
    (root, Issuer::new(params, key))
}

impl Encrypting {
    /// With a certificate for this name.
    fn start(programs: &Programs, name: &str) -> Self {
        let (root, issuer) = authority();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let mut cluster = Cluster::start_on_a_port(programs, &["fsync=off"]).unwrap();
        let cert_file = cluster.put("server.crt", &certificate.pem()).unwrap();
        let key_file = cluster.put("server.key", &key.serialize_pem()).unwrap();
        for (setting, value) in [
            ("ssl_cert_file", cert_file.display().to_string()),
            ("ssl_key_file", key_file.display().to_string()),
            ("ssl", "on".to_owned()),
        ] {
            let sql = format!("ALTER SYSTEM SET {setting} = '{value}'");
            cluster.sql(&sql).unwrap();
        }
        cluster.stop_at_once().unwrap();
        cluster.start_again().unwrap();
        let path = |name: &str, pem: &str| cluster.put(name, pem).unwrap().display().to_string();
        let (root, stranger) = (path("root.pem", &root), path("other.pem", &authority().0));
        Self {
            cluster,
            root,
            stranger,
        }
    }

    /// Opens a store; tells whether its connections are encrypted.
    async fn open(&self, query: &str) -> Result<bool, StoreError> {
        open(&self.cluster, query).await
    }
}

async fn open(cluster: &Cluster, query: &str) -> Result<bool, StoreError> {
    let port = cluster.port().unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres?{query}");
    let store = PostgresStore::open(&url, Options::default()).await?;
    store.create(&owner(), birth("s")).await?;
    let asked = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = 'throughline'";
    Ok(cluster.sql(asked).unwrap() == "t")
}

fn told(refused: Result<bool, StoreError>) -> String {
    let error = refused.expect_err("it was let in");
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[test]
fn connections_are_encrypted_as_the_address_says() {
    let Some(programs) = Programs::for_tests() else {
        return;
    };
    let server = Encrypting::start(&programs, "127.0.0.1");
    run(async {
        assert!(!server.open("sslmode=disable").await.unwrap());
        assert!(server.open("application_name=throughline").await.unwrap());
        assert!(server.open("sslmode=prefer").await.unwrap());
        assert!(server.open("sslmode=require").await.unwrap());
        let root = &server.root;
        for mode in ["require", "verify-ca", "verify-full"] {
            let query = format!("sslmode={mode}&sslrootcert={root}");
            assert!(server.open(&query).await.unwrap(), "{mode}");
            let query = format!("sslmode={mode}&sslrootcert={}", server.stranger);
            let refused = told(server.open(&query).await);
            assert!(refused.contains("certificate"), "{mode}: {refused}");
        }
    });
}

#[test]
fn a_certificate_for_another_name_will_not_do_where_names_count() {
    let Some(programs) = Programs::for_tests() else {
        return;
    };
    let server = Encrypting::start(&programs, "elsewhere.example");
    run(async {
        let root = &server.root;
        let by_root = format!("sslmode=verify-ca&sslrootcert={root}");
        assert!(server.open(&by_root).await.unwrap());
        let by_name = format!("sslmode=verify-full&sslrootcert={root}");
        let refused = told(server.open(&by_name).await);
        assert!(refused.contains("name"), "{refused}");
    });
}

#[test]
fn a_server_that_cannot_encrypt_is_refused_where_it_must() {
    let Some(programs) = Programs::for_tests() else {
        return;
    };
    let cluster = Cluster::start_on_a_port(&programs, &["fsync=off"]).unwrap();
    run(async {
        assert!(!open(&cluster, "sslmode=prefer").await.unwrap());
        let refused = told(open(&cluster, "sslmode=require").await);
        assert!(refused.contains("does not support TLS"), "{refused}");
    });
}
