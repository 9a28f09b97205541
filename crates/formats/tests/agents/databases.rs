//! Formats of databases, with the tables their systems make.

use std::path::PathBuf;

use rusqlite::Connection;
use throughline_formats::Agent;

use crate::told::{from, text, written};

fn database(name: &str, sql: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    (folder, path)
}

macro_rules! golden {
    ($name:literal, $told:expr) => {{
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!($name, $told));
    }};
}

const OPENCODE: &str = r#"
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
  directory text NOT NULL, title text NOT NULL, version text NOT NULL, cost real DEFAULT 0, revert text,
  time_created integer NOT NULL, time_updated integer NOT NULL, time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL,
  seq integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
INSERT INTO session VALUES ('ses_1','p',NULL,'s','/work/app','A title','1.0',0,NULL,1735732800000,1735732900000,1735732950000);
INSERT INTO session VALUES ('ses_2','p','ses_1','s','/work/app','New session - 2025','1.0',0,NULL,1735732810000,1735732910000,NULL);
INSERT INTO session VALUES ('ses_3','p',NULL,'s','/work/app','Newer','1.0',0,NULL,1735732820000,1735732920000,NULL);
INSERT INTO message VALUES ('msg_1','ses_1',1735732801000,0,'{"role":"user","time":{"created":1735732801000}}');
INSERT INTO message VALUES ('msg_2','ses_1',1735732802000,0,'{"role":"assistant","modelID":"m","providerID":"p","tokens":{"input":3,"output":4},"time":{"created":1735732802000,"completed":1735732803000}}');
INSERT INTO message VALUES ('msg_3','ses_1',1735732803000,0,'not json');
INSERT INTO part VALUES ('prt_1','msg_1','ses_1',0,0,'{"type":"text","text":"Hello"}');
INSERT INTO part VALUES ('prt_2','msg_2','ses_1',0,0,'{"type":"text","text":"Hi"}');
INSERT INTO part VALUES ('prt_3','msg_2','ses_1',0,0,'{"type":"tool","callID":"c1","tool":"read","state":{"status":"completed","input":{"path":"a"},"output":"x","time":{"start":1,"end":2,"compacted":3}}}');
INSERT INTO message VALUES ('msg_4','ses_2',1735732811000,0,'{"role":"user","time":{"created":1735732811000}}');
INSERT INTO part VALUES ('prt_4','msg_4','ses_2',0,0,'{"type":"text","text":"For a sub-agent"}');
INSERT INTO session_message VALUES ('sm_1','ses_3','user',1,0,0,'{"role":"user","time":{"created":1735732821000},"parts":[{"type":"text","text":"In the newer table"}]}');
INSERT INTO session_message VALUES ('sm_2','ses_3','synthetic',2,0,0,'{"text":"x"}');
"#;

#[test]
fn an_opencode_database_is_read_and_then_only_what_changed() {
    let (_folder, path) = database("opencode.db", OPENCODE);
    let (told, bookmark) = from(Agent::OpenCode, &path, None);
    golden!("opencode_database", written(&told));
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            r#"INSERT INTO message VALUES ('msg_9','ses_2',1735732812000,0,'{"role":"user","time":{"created":1735732812000}}');
               INSERT INTO part VALUES ('prt_9','msg_9','ses_2',0,0,'{"type":"text","text":"More"}');
               UPDATE session SET time_updated = 1735732999000 WHERE id = 'ses_2';"#,
        )
        .unwrap();
    let (told, _) = from(Agent::OpenCode, &path, bookmark.as_ref());
    let told = written(&told);
    assert!(
        told.contains("\"More\"") && !told.contains("session ses_1 "),
        "{told}"
    );
}

#[test]
fn a_goose_database_is_read() {
    let (_folder, path) = database(
        "sessions.db",
        r#"CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '',
             user_set_name BOOLEAN DEFAULT FALSE, session_type TEXT, working_dir TEXT NOT NULL, created_at TIMESTAMP,
             updated_at TIMESTAMP, total_tokens INTEGER, provider_name TEXT, model_config_json TEXT);
           CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL, role TEXT NOT NULL,
             content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, metadata_json TEXT);
           INSERT INTO sessions VALUES ('20260102_1','Fix the build','x',1,'user','/work/app','2026-01-02 10:00:00','2026-01-02 10:10:00',10,'anthropic','{}');
           INSERT INTO sessions VALUES ('20260102_2','','Nothing said',0,'user','/work/app','2026-01-02 10:00:00','2026-01-02 10:10:00',10,NULL,NULL);
           INSERT INTO messages VALUES (1,'m1','20260102_1','user','[{"type":"text","text":"Fix it"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]',1767348000,'{"userVisible":true,"agentVisible":false}');
           INSERT INTO messages VALUES (2,NULL,'20260102_1','assistant','[{"type":"thinking","thinking":"Hm","signature":"s"},{"type":"redactedThinking","data":"x"},{"type":"toolRequest","id":"t1","toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"make"}}}}]',1767348001,'{"userVisible":true,"agentVisible":false}');
           INSERT INTO messages VALUES (3,'m3','20260102_1','user','[{"type":"toolResponse","id":"t1","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"ok"}],"isError":false}}}]',1767348002,NULL);
           INSERT INTO messages VALUES (4,'m4','20260102_1','user','[{"type":"text","text":"They fixed the build"}]',1767348003,'{"userVisible":false,"agentVisible":true}');
           INSERT INTO messages VALUES (5,'m5','20260102_1','assistant','[{"type":"systemNotification","notificationType":"inlineMessage","msg":"compacted"}]',1767348004,'{"userVisible":true,"agentVisible":false}');
           INSERT INTO messages VALUES (6,'m6','20260102_1','assistant','[{"type":"toolRequest","id":"t2","toolCall":{"status":"error","error":"bad call"}}]',1767348005,NULL);
           INSERT INTO messages VALUES (7,'m7','20260102_1','user','[{"type":"toolResponse","id":"t2","toolResult":{"status":"error","error":"no such tool"}}]',1767348006,NULL);
           INSERT INTO messages VALUES (8,'m8','20260102_1','user','{damaged',1767348007,NULL);"#,
    );
    golden!("goose_database", text(Agent::Goose, &path));
}

/// As Goose 1.52 writes them: the time and folder of each turn, what an answer cost, a compaction
/// with its word to the model, and one before it that the next has hidden as well.
#[test]
fn what_goose_tells_the_model_alone_is_no_compaction() {
    let (_folder, path) = database(
        "sessions.db",
        r#"CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '',
             user_set_name BOOLEAN DEFAULT FALSE, working_dir TEXT NOT NULL, created_at TIMESTAMP, provider_name TEXT,
             parent_session_id TEXT);
           CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL, role TEXT NOT NULL,
             content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, metadata_json TEXT);
           INSERT INTO sessions VALUES ('20261118_1','','Ports',0,'/work/app','2026-11-18 10:00:00','openai',NULL);
           INSERT INTO sessions VALUES ('20261118_2','','Helping',0,'/work/app','2026-11-18 10:01:00','openai','20261118_1');
           INSERT INTO messages VALUES (1,'m1','20261118_1','user','[{"type":"text","text":"Which port?"}]',1795000000,'{"userVisible":true,"agentVisible":false}');
           INSERT INTO messages VALUES (2,'m2','20261118_1','user','[{"type":"text","text":"<turn-context>noon</turn-context>"}]',1795000001,'{"userVisible":false,"agentVisible":false,"turnContext":true}');
           INSERT INTO messages VALUES (3,'c1','20261118_1','assistant','[{"type":"text","text":"8080"}]',1795000002,'{"userVisible":true,"agentVisible":false,"inference":{"provider":"openai","requestedModel":"gpt-x"},"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}}');
           INSERT INTO messages VALUES (4,'c1','20261118_1','assistant','[{"type":"text","text":"And nothing else."}]',1795000002,'{"userVisible":true,"agentVisible":false}');
           INSERT INTO messages VALUES (5,'m5','20261118_1','user','[{"type":"text","text":"The port is 8080"}]',1795000003,'{"userVisible":false,"agentVisible":false}');
           INSERT INTO messages VALUES (6,'m6','20261118_1','assistant','[{"type":"text","text":"Do not mention the summary."}]',1795000003,'{"userVisible":false,"agentVisible":false}');
           INSERT INTO messages VALUES (7,'m7','20261118_1','user','[{"type":"text","text":"Both ports were named"}]',1795000004,'{"userVisible":false,"agentVisible":true}');
           INSERT INTO messages VALUES (8,'m8','20261118_1','assistant','[{"type":"text","text":"Do not mention the summary."}]',1795000004,'{"userVisible":false,"agentVisible":true,"usage":{"inputTokens":-1},"inference":"later"}');
           INSERT INTO messages VALUES (9,'m9','20261118_2','user','[{"type":"text","text":"Look it up"}]',1795000005,'{"userVisible":true,"agentVisible":true}');
           INSERT INTO messages VALUES (10,'m10','20261118_2','user','[{"type":"text","text":"<info>a hint</info>"}]',1795000006,'{"userVisible":false,"agentVisible":true}');"#,
    );
    golden!("goose_alone", text(Agent::Goose, &path));
}

#[test]
fn an_llm_database_is_read_in_both_its_ages() {
    let (_folder, path) = database(
        "logs.db",
        r#"CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
           CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT, options_json TEXT,
             response TEXT, response_json TEXT, conversation_id TEXT, duration_ms INTEGER, datetime_utc TEXT,
             input_tokens INTEGER, output_tokens INTEGER, token_details TEXT, schema_id TEXT, resolved_model TEXT, reasoning TEXT);
           CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
           CREATE TABLE prompt_attachments (response_id TEXT, attachment_id TEXT, "order" INTEGER);
           CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, arguments TEXT, tool_call_id TEXT);
           CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, output TEXT, tool_call_id TEXT, instance_id INTEGER, exception TEXT);
           CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT, datetime_utc TEXT);
           CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT, model TEXT, resolved_model TEXT,
             input_tokens INTEGER, output_tokens INTEGER, duration_ms INTEGER, datetime_utc TEXT);
           CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT, provider_metadata TEXT);
           CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, tool_name TEXT, text TEXT, payload TEXT);
           CREATE TABLE part_attachments (part_id INTEGER, attachment_id TEXT, "order" INTEGER);
           CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT, datetime_utc TEXT, source TEXT);
           INSERT INTO conversations VALUES ('01conv','Say hello','gpt-x');
           INSERT INTO responses VALUES ('01r1','gpt-x','Hello','Be kind',NULL,'{}','Hi',NULL,'01conv',1200,'2026-01-02T10:00:00.123456+00:00',10,5,NULL,NULL,NULL,'Hm');
           INSERT INTO responses VALUES ('01r2','gpt-x','',NULL,NULL,'{}','Done',NULL,'01conv',800,'2026-01-02T10:00:05+00:00',NULL,NULL,NULL,NULL,NULL,NULL);
           INSERT INTO responses VALUES ('01r3','gpt-x','Alone',NULL,NULL,'{}','Yes',NULL,NULL,1,'2026-01-02T11:00:00',NULL,NULL,NULL,NULL,NULL,NULL);
           INSERT INTO attachments VALUES ('a1','image/png',NULL,NULL,x'89504e47'),('a2','image/png','/x.png',NULL,NULL);
           INSERT INTO prompt_attachments VALUES ('01r1','a1',0),('01r1','a2',1);
           INSERT INTO tool_calls VALUES (1,'01r1',1,'upper','{"text":"x"}','c1');
           INSERT INTO tool_results VALUES (1,'01r2',1,'upper','X','c1',NULL,NULL);
           INSERT INTO threads VALUES ('01thread','A tree',NULL,NULL,'2026-02-02T10:00:00');
           INSERT INTO messages VALUES ('h1',NULL,'user',NULL),('h2','h1','assistant',NULL),('h3','h2','user',NULL),('h4','h3','assistant',NULL);
           INSERT INTO parts VALUES (1,'h1',0,'text',NULL,'First',NULL),(2,'h2',0,'reasoning',NULL,'Hm',NULL),(3,'h2',1,'text',NULL,'One',NULL),
             (4,'h3',0,'text',NULL,NULL,'{"text_ref":[{"fragment":1},{"literal":" and more"}]}'),(5,'h4',0,'tool_call','f',NULL,'{"name":"f","arguments":{"x":1},"tool_call_id":"c9"}'),
             (6,'h4',1,'tool_result','f',NULL,'{"name":"f","output":"boom","tool_call_id":"c9","exception":"E"}'),(7,'h4',2,'attachment',NULL,NULL,'{"attachment":{"id":"a1"}}');
           INSERT INTO part_attachments VALUES (7,'a1',0);
           INSERT INTO fragments VALUES (1,'f','Long text','2026-02-02','x');
           INSERT INTO turns VALUES ('t1','01thread',NULL,'h2','m','m-1',3,4,10,'2026-02-02T10:00:00'),('t2','01thread','h3','h4','m',NULL,NULL,NULL,NULL,'2026-02-02T10:01:00');"#,
    );
    golden!("llm_database", text(Agent::Llm, &path));
}

#[test]
fn sessions_of_the_agents_sdk_are_read() {
    let (_folder, path) = database(
        "agents.db",
        r#"CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
           CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, message_data TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
           INSERT INTO agent_sessions VALUES ('conversation_123','2026-01-02 10:00:00','2026-01-02 10:00:00');
           INSERT INTO agent_messages VALUES (1,'conversation_123','{"role":"user","content":"What is in Paris?"}','2026-01-02 10:00:01');
           INSERT INTO agent_messages VALUES (2,'conversation_123','{"id":"fc_1","type":"function_call","call_id":"c1","name":"look","arguments":"{\"city\":\"Paris\"}"}','2026-01-02 10:00:02');
           INSERT INTO agent_messages VALUES (3,'conversation_123','{"type":"function_call_output","call_id":"c1","output":"A tower"}','2026-01-02 10:00:03');
           INSERT INTO agent_messages VALUES (4,'conversation_123','{"id":"m1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"A tower.","annotations":[]}]}','2026-01-02 10:00:04');
           INSERT INTO agent_messages VALUES (5,'conversation_123','{"of":"a later version"}','2026-01-02 10:00:05');
           INSERT INTO agent_messages VALUES (6,'conversation_123','broken','2026-01-02 10:00:06');"#,
    );
    golden!("openai_agents_database", text(Agent::OpenAiAgents, &path));
}
