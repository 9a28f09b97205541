//! Tests of `session_log`: what is written is read back, and damaged lines are reported.

use proptest::prelude::*;
use throughline_model::{
    Body, EntryId, GENESIS, Json, Lineage, NewEntry, Role, SessionId, Timestamp,
};

use super::*;

fn header(id: &str) -> SessionHeader {
    let mut header = SessionHeader::new(id.parse::<SessionId>().unwrap(), Timestamp::UNIX_EPOCH);
    header.lineage = Lineage::Continued {
        session: "s0".parse().unwrap(),
    };
    header
}

fn stored_entry(seq: u64, payload: &str) -> StoredEntry {
    let id = EntryId::from_bytes([u8::try_from(seq).unwrap(); 16]);
    let at = "2026-11-15T10:00:00.5Z".parse().unwrap();
    let payload_digest = Digest::of(payload.as_bytes());
    StoredEntry {
        seq: Seq(seq),
        id,
        at,
        digest: GENESIS.chain(Seq(seq), id, at, &payload_digest),
        payload: payload.to_owned(),
    }
}

fn render(sessions: &[(SessionHeader, Vec<StoredEntry>)]) -> String {
    let (first, rest) = sessions.split_first().unwrap();
    let mut log = LogWriter::new(Vec::new(), &first.0, Seq(1), &GENESIS).unwrap();
    for entry in &first.1 {
        log.write_entry(entry).unwrap();
    }
    for (header, entries) in rest {
        log.start_session(header, Seq(1), &GENESIS).unwrap();
        for entry in entries {
            log.write_entry(entry).unwrap();
        }
    }
    String::from_utf8(log.finish().unwrap()).unwrap()
}

fn items(text: &str) -> Vec<Result<LogItem, LineError>> {
    LogItems::new(text.as_bytes())
        .map(|item| item.unwrap().1)
        .collect()
}

fn session_item(header: &SessionHeader) -> LogItem {
    LogItem::Session {
        header: Box::new(header.clone()),
        head: Seq(1),
        digest: GENESIS,
    }
}

#[test]
fn a_log_is_a_session_line_and_a_line_an_entry() {
    let text = render(&[(header("s1"), vec![stored_entry(1, r#"{"kind":"cleared"}"#)])]);
    let zeros = "0".repeat(64);
    let digest = stored_entry(1, r#"{"kind":"cleared"}"#).digest;
    assert_eq!(
        text,
        format!(
            r#"{{"throughline":1,"session":{{"id":"s1","at":"1970-01-01T00:00:00Z","lineage":{{"from":"continued","session":"s0"}}}},"head":1,"digest":"{zeros}"}}
{{"seq":1,"id":"01010101-0101-0101-0101-010101010101","at":"2026-11-15T10:00:00.500000Z","digest":"{digest}","payload":{{"kind":"cleared"}}}}
"#
        )
    );
    assert!(is_log(text.lines().next().unwrap()));
    assert!(is_log(format!("\u{feff}{text}").lines().next().unwrap()));
}

#[test]
fn other_files_are_not_taken_for_logs() {
    for line in [
        "",
        "{",
        r#"{"role":"user","content":"x"}"#,
        "[1]",
        "# Chat",
        r#"{"throughline":"x"}"#,
    ] {
        assert!(!is_log(line), "{line}");
    }
}

#[test]
fn payloads_survive_whatever_they_look_like() {
    for payload in [
        r#"{"kind":"levitated", "height":3.50,"n":1e400}"#,
        "{\"kind\":\n\"cleared\"}",
        "{\"kind\":\r\"cleared\"}",
        r#" {"kind":"cleared"} "#,
        "{\"kind\":\"mess",
        "null",
        "",
        "\u{0}\u{2028}",
    ] {
        let entry = stored_entry(1, payload);
        let text = render(&[(header("s1"), vec![entry.clone()])]);
        assert_eq!(text.lines().count(), 2, "{payload:?}");
        assert_eq!(items(&text)[1], Ok(LogItem::Entry(entry.clone())));
        entry.verify(&GENESIS).unwrap();
    }
}

#[test]
fn deep_payloads_survive_up_to_a_limit() {
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        let entry = stored_entry(1, &format!(r#"{{"kind":"x","d":{open}{close}}}"#));
        let text = render(&[(header("s1"), vec![entry.clone()])]);
        (items(&text).remove(1), entry)
    };
    let (read, entry) = nested(256);
    assert_eq!(read, Ok(LogItem::Entry(entry)));
    for levels in [300, 50_000] {
        assert_eq!(nested(levels).0, Err(LineError::TooDeep));
    }
}

#[test]
fn an_entry_is_never_given_to_the_wrong_session() {
    let text = render(&[
        (header("s1"), vec![stored_entry(1, r#"{"kind":"cleared"}"#)]),
        (header("s2"), vec![stored_entry(2, r#"{"kind":"cleared"}"#)]),
        (header("s3"), vec![stored_entry(3, r#"{"kind":"cleared"}"#)]),
    ]);
    let broken = text.replace(r#""id":"s2""#, r#""id":"../s2""#);
    let read = items(&broken);
    assert_eq!(read[0], Ok(session_item(&header("s1"))));
    assert!(matches!(read[2], Err(LineError::NotALogLine(_))));
    assert_eq!(read[3], Err(LineError::MissingSession));
    assert_eq!(read[4], Ok(session_item(&header("s3"))));
    assert!(read[5].is_ok());

    let headless = text.split_once('\n').unwrap().1;
    assert_eq!(items(headless)[0], Err(LineError::MissingSession));
}

#[test]
fn what_is_wrong_with_a_line_is_reported() {
    let read = items("{\"throughline\":2}\n{\n[1]\n{\"seq\":1}\n");
    assert_eq!(read[0], Err(LineError::UnsupportedVersion(2)));
    assert!(matches!(read[1], Err(LineError::NotJson { .. })));
    assert!(matches!(read[2], Err(LineError::NotALogLine(_))));
    assert_eq!(
        read[3],
        Err(LineError::NotALogLine("missing field `id`".into()))
    );
}

fn entries() -> impl Strategy<Value = Vec<StoredEntry>> {
    let body = prop_oneof![
        ".*".prop_map(|text| Body::Message(throughline_model::Message::text(Role::User, text))),
        ".*".prop_map(|text| Body::Pinned { text }),
        (".*", "[ \n\r\t]{0,3}").prop_map(|(text, space)| Body::Unknown {
            kind: "later".into(),
            payload: Json::parse(format!(
                r#"{{"kind":"later",{space}"x":{}}}"#,
                serde_json::to_string(&text).unwrap()
            ))
            .unwrap(),
        }),
    ];
    let entry = (body, any::<[u8; 16]>(), 0..4_000_000_000_000_000_i64);
    prop::collection::vec(entry, 0..8).prop_map(|entries| {
        let mut previous = GENESIS;
        let numbered = entries.into_iter().zip(1..);
        numbered
            .map(|((body, id, micros), seq)| {
                let at = Timestamp::from_microsecond(micros).unwrap();
                let new = NewEntry::new(EntryId::from_bytes(id), at, body);
                let stored = StoredEntry::from_new(&previous, Seq(seq), &new, None).unwrap();
                previous = stored.digest;
                stored
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(one in entries(), two in entries()) {
        let sessions = [(header("s1"), one), (header("s2"), two)];
        let expected: Vec<_> = sessions
            .iter()
            .flat_map(|(header, entries)| {
                let entries = entries.iter().cloned().map(LogItem::Entry);
                std::iter::once(session_item(header)).chain(entries).map(Ok)
            })
            .collect();
        prop_assert_eq!(items(&render(&sessions)), expected);
    }
}

#[test]
fn the_bytes_of_an_attachment_come_back_and_forged_ones_do_not() {
    let header = SessionHeader::new(
        "s".parse().unwrap(),
        throughline_model::Timestamp::UNIX_EPOCH,
    );
    let mut writer =
        LogWriter::new(Vec::new(), &header, Seq::ZERO, &throughline_model::GENESIS).unwrap();
    writer.write_blob(b"\0png").unwrap();
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    let items = |text: &str| -> Vec<_> {
        LogItems::new(text.as_bytes())
            .map(|item| item.unwrap().1)
            .collect()
    };
    assert_eq!(items(&text)[1], Ok(LogItem::Blob(b"\0png".to_vec())));
    let forged = text
        .replace("AHBuZw==", "AHBuZx==")
        .replace("AHBuZx==", "AHBuZzE=");
    assert!(matches!(items(&forged)[1], Err(LineError::NotALogLine(_))));
}
