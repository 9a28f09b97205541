//! Tests that readers never panic, whatever a file contains.

use proptest::prelude::*;
use throughline_formats::{
    LogItems, MessageLines, is_log, parse_message, read_document, read_transcript,
};

/// Generates text from fragments of the formats, in any order.
fn almost_valid() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\n",
        "\r\n",
        " ",
        "null",
        "1e400",
        "-1",
        "\\ud800",
        "\"role\":\"user\"",
        "\"content\":",
        "\"x\"",
        "\"at\":",
        "\"tool_calls\":",
        "{\"type\":\"tool_result\",\"call_id\":\"c\",\"content\":",
        "\"usage\":{\"input\":1}",
        "{\"throughline\":1,\"session\":{\"id\":\"s\",\"at\":\"1970-01-01T00:00:00Z\"},\"head\":0",
        "\"digest\":\"",
        "\"entries\":[",
        "\"payload\":{}",
        "\"seq\":1",
        "\u{feff}",
        "é",
        "😀",
        "# A Conversation\n",
        "**Session ID:** s\n",
        "---\n",
        "## Query 1 (10:00:00)\n",
        "## Session Restored (10:00:00)\n",
        "**You:** ",
        "**You (",
        "**A:** ",
        "*Time: 1e300s*\n",
        "*Tokens: 1 (in: 2, out: 3)*\n",
        "*10:00:00 ",
        "<!-- SESSION_SUMMARY_START -->",
        "<!-- SESSION_SUMMARY_END -->",
        "> **System:**",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
}

fn read_everything(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = parse_message(&text);
    let _ = is_log(&text);
    let _ = read_transcript(&text);
    let _ = read_document(bytes);
    for limit in [4, 1 << 20] {
        let mut messages = MessageLines::new(bytes).with_limit(limit);
        assert!(messages.by_ref().all(|line| line.is_ok()));
        assert_eq!(messages.bytes_read(), bytes.len() as u64);
        let mut items = LogItems::new(bytes).with_limit(limit);
        assert!(items.by_ref().all(|line| line.is_ok()));
        assert_eq!(items.bytes_read(), bytes.len() as u64);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_everything(&bytes);
    }

    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        read_everything(text.as_bytes());
    }

    #[test]
    fn what_is_nearly_right_is_survived(bytes in almost_valid()) {
        read_everything(&bytes);
    }
}
