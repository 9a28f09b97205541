//! Definitions of reference links seen so far.

use std::collections::HashMap;

/// Addresses of reference links by label.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkDefinitions(HashMap<String, String>);

impl LinkDefinitions {
    /// Records a definition; the first one of a label is used.
    pub(super) fn define(&mut self, label: &str, url: &str) {
        self.0
            .entry(normalize_label(label))
            .or_insert_with(|| url.to_owned());
    }

    pub(super) fn find(&self, label: &str) -> Option<String> {
        if self.0.is_empty() {
            None
        } else {
            self.0.get(&normalize_label(label)).cloned()
        }
    }
}

/// Normalizes a label, which is compared ignoring case and white space.
fn normalize_label(label: &str) -> String {
    let words: Vec<&str> = label.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_definition_of_a_label_counts() {
        let mut links = LinkDefinitions::default();
        links.define("A  label", "one");
        links.define("a label", "two");
        assert_eq!(links.find("a LABEL").as_deref(), Some("one"));
        assert_eq!(links.find("b"), None);
    }
}
