//! TLS to the database, with a real server and generated certificates.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{header, owner, run};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use throughline_cluster::{Cluster, PostgresBinaries};
use throughline_postgres::{Options, PostgresStore};
use throughline_store::{LogStore, StoreError};

/// A server with TLS, and the certificate of its CA.
struct TlsServer {
    cluster: Cluster,
    root: String,
    /// The root of another CA.
    other_root: String,
}

fn make_authority() -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let root = params.self_signed(&key).unwrap().pem();
    (root, Issuer::new(params, key))
}

impl TlsServer {
    /// Starts a server with a certificate for this name.
    fn start(programs: &PostgresBinaries, name: &str) -> Self {
        let (root, issuer) = make_authority();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let mut cluster = Cluster::start_with_tcp(programs, &["fsync=off"]).unwrap();
        let cert_file = cluster
            .write_file("server.crt", &certificate.pem())
            .unwrap();
        let key_file = cluster
            .write_file("server.key", &key.serialize_pem())
            .unwrap();
        for (setting, value) in [
            ("ssl_cert_file", cert_file.display().to_string()),
            ("ssl_key_file", key_file.display().to_string()),
            ("ssl", "on".to_owned()),
        ] {
            let sql = format!("ALTER SYSTEM SET {setting} = '{value}'");
            cluster.run_sql(&sql).unwrap();
        }
        cluster.stop_immediately().unwrap();
        cluster.ensure_running().unwrap();
        let path =
            |name: &str, pem: &str| cluster.write_file(name, pem).unwrap().display().to_string();
        let (root, other_root) = (
            path("root.pem", &root),
            path("other.pem", &make_authority().0),
        );
        Self {
            cluster,
            root,
            other_root,
        }
    }

    /// Opens a store; returns whether its connections are encrypted.
    async fn open(&self, query: &str) -> Result<bool, StoreError> {
        open(&self.cluster, query).await
    }
}

async fn open(cluster: &Cluster, query: &str) -> Result<bool, StoreError> {
    let port = cluster.port().unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres?{query}");
    let store = PostgresStore::open(&url, Options::default()).await?;
    store.create(&owner(), header("s")).await?;
    let asked = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = 'throughline'";
    Ok(cluster.run_sql(asked).unwrap() == "t")
}

fn error_text(refused: Result<bool, StoreError>) -> String {
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
    let Some(programs) = PostgresBinaries::for_tests() else {
        return;
    };
    let server = TlsServer::start(&programs, "127.0.0.1");
    run(async {
        assert!(!server.open("sslmode=disable").await.unwrap());
        assert!(server.open("application_name=throughline").await.unwrap());
        assert!(server.open("sslmode=prefer").await.unwrap());
        assert!(server.open("sslmode=require").await.unwrap());
        let root = &server.root;
        for mode in ["require", "verify-ca", "verify-full"] {
            let query = format!("sslmode={mode}&sslrootcert={root}");
            assert!(server.open(&query).await.unwrap(), "{mode}");
            let query = format!("sslmode={mode}&sslrootcert={}", server.other_root);
            let refused = error_text(server.open(&query).await);
            assert!(refused.contains("certificate"), "{mode}: {refused}");
        }
    });
}

#[test]
fn a_certificate_for_another_name_will_not_do_where_names_count() {
    let Some(programs) = PostgresBinaries::for_tests() else {
        return;
    };
    let server = TlsServer::start(&programs, "elsewhere.example");
    run(async {
        let root = &server.root;
        let by_root = format!("sslmode=verify-ca&sslrootcert={root}");
        assert!(server.open(&by_root).await.unwrap());
        let by_name = format!("sslmode=verify-full&sslrootcert={root}");
        let refused = error_text(server.open(&by_name).await);
        assert!(refused.contains("name"), "{refused}");
    });
}

#[test]
fn a_server_that_cannot_encrypt_is_refused_where_it_must() {
    let Some(programs) = PostgresBinaries::for_tests() else {
        return;
    };
    let cluster = Cluster::start_with_tcp(&programs, &["fsync=off"]).unwrap();
    run(async {
        assert!(!open(&cluster, "sslmode=prefer").await.unwrap());
        let refused = error_text(open(&cluster, "sslmode=require").await);
        assert!(refused.contains("does not support TLS"), "{refused}");
    });
}
