//! Events of entries that other servers' clients append.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::Value;
use throughline_cluster::{Cluster, FaultProxy, PostgresBinaries, Upstream};

use super::{Client, ClientReport, Fleet};
use crate::server_process::HttpRequest;

const MESSAGE_COUNT: usize = 60;

/// Collects the message texts of a server's event stream, as they arrive.
fn collect_texts(address: &str, ready: &std::sync::mpsc::Sender<()>) -> Vec<String> {
    let ask = HttpRequest {
        method: "GET",
        path: "/api/events?kind=message_added",
        headers: "",
        body: "",
    };
    let stream = ask.send(address).unwrap();
    let mut heard = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line.expect("the server goes on telling");
        if line == "event: ready" {
            ready.send(()).unwrap();
        }
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        let told: Value = serde_json::from_str(data).unwrap();
        if let Some(text) = told["entry"]["content"].as_str() {
            heard.push(text.to_owned());
        }
        if heard.len() == MESSAGE_COUNT {
            break;
        }
    }
    heard
}

#[test]
fn a_server_whose_listening_connection_is_cut_delivers_everything_in_order() {
    let Some(programs) = PostgresBinaries::for_tests() else {
        return;
    };
    let cluster = Cluster::start(&programs, &["fsync=off"]).unwrap();
    let cutter = FaultProxy::start(Upstream::Socket(cluster.socket())).unwrap();
    cutter.cut_commits(false);
    let through = format!(
        "postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable",
        cutter.port()
    );
    let direct = cluster.url();
    let fleet = Fleet::start([&direct, &through, &direct], &[]);
    let session = fleet.session("talk");
    let (ready, is_ready) = std::sync::mpsc::channel();
    let address = fleet.servers[1].address.clone();
    let hearing = std::thread::spawn(move || collect_texts(&address, &ready));
    is_ready.recv_timeout(Duration::from_secs(20)).unwrap();

    let mut client = Client {
        addresses: vec![fleet.servers[0].address.clone()],
        server: 0,
        work: ClientReport::default(),
    };
    let said: Vec<String> = (0..MESSAGE_COUNT)
        .map(|count| format!("said {count}"))
        .collect();
    for (count, text) in said.iter().enumerate() {
        if count % 10 == 5 {
            // No notifications get through for a while.
            cutter.close_connections();
        }
        client.append(&session, text);
    }

    assert_eq!(hearing.join().unwrap(), said);
    fleet.verify(&client.work.acknowledged);
}
