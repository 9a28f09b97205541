//! Detects HTML blocks in Markdown.

/// What ends a block of HTML.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum HtmlBlockEnd {
    /// The line that holds this.
    Text(&'static str),
    /// A blank line.
    Blank,
}

/// Elements whose content may hold blank lines.
const RAW_ELEMENTS: [(&str, &str); 4] = [
    ("pre", "</pre>"),
    ("script", "</script>"),
    ("style", "</style>"),
    ("textarea", "</textarea>"),
];

/// Elements that begin a block wherever they begin a line.
const BLOCK_ELEMENTS: &str = " address article aside base basefont blockquote body caption center col \
    colgroup dd details dialog dir div dl dt fieldset figcaption figure footer form frame frameset \
    h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link main menu menuitem nav noframes ol \
    optgroup option p param search section summary table tbody td tfoot th thead title tr track ul ";

impl HtmlBlockEnd {
    /// Returns how the HTML block that this text begins will end, if it begins one.
    ///
    /// Any other tag begins a block only where no paragraph is open.
    pub(super) fn detect(text: &str, in_paragraph: bool) -> Option<HtmlBlockEnd> {
        let tag = text.strip_prefix('<')?;
        let special = [("!--", "-->"), ("?", "?>"), ("![CDATA[", "]]>")];
        if let Some((_, end)) = special.iter().find(|(begin, _)| tag.starts_with(begin)) {
            return Some(HtmlBlockEnd::Text(end));
        }
        if tag.starts_with('!') && tag[1..].starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Some(HtmlBlockEnd::Text(">"));
        }
        let closing = tag.starts_with('/');
        let tag = tag.strip_prefix('/').unwrap_or(tag);
        let length = tag
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || *b == b'-')
            .count();
        let (name, after) = tag.split_at(length);
        let name = name.to_ascii_lowercase();
        let ends = after.is_empty() || after.starts_with([' ', '\t', '>']);
        if let Some((_, end)) = RAW_ELEMENTS
            .iter()
            .find(|(raw, _)| !closing && ends && *raw == name)
        {
            return Some(HtmlBlockEnd::Text(end));
        }
        if length == 0 {
            return None;
        }
        if (ends || after.starts_with("/>")) && BLOCK_ELEMENTS.contains(&format!(" {name} ")) {
            return Some(HtmlBlockEnd::Blank);
        }
        let alone = after
            .find('>')
            .is_some_and(|close| after[close + 1..].trim().is_empty());
        (!in_paragraph && alone).then_some(HtmlBlockEnd::Blank)
    }

    /// Returns whether the block ends with this line.
    pub(super) fn is_reached_by(self, line: &str) -> bool {
        match self {
            HtmlBlockEnd::Text(end) => line
                .to_ascii_lowercase()
                .contains(&end.to_ascii_lowercase()),
            HtmlBlockEnd::Blank => line.trim().is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_ends_as_its_kind_does() {
        assert_eq!(
            HtmlBlockEnd::detect("<!-- a", true),
            Some(HtmlBlockEnd::Text("-->"))
        );
        assert_eq!(
            HtmlBlockEnd::detect("<PRE>", true),
            Some(HtmlBlockEnd::Text("</pre>"))
        );
        assert_eq!(
            HtmlBlockEnd::detect("</div>", true),
            Some(HtmlBlockEnd::Blank)
        );
        assert_eq!(HtmlBlockEnd::detect("<b>", true), None);
        assert_eq!(
            HtmlBlockEnd::detect("<b>", false),
            Some(HtmlBlockEnd::Blank)
        );
        assert_eq!(HtmlBlockEnd::detect("<b> text", false), None);
        assert_eq!(HtmlBlockEnd::detect("<https://example.org>", true), None);
    }
}
