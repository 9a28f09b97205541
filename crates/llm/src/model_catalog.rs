//! Context windows and prices of well-known models.
//!
//! Prices are dollars per million tokens at the maker's standard rate, as published in
//! November 2026. Surcharges for very long requests and discounts for batches are ignored,
//! so a cost is an estimate.
//!
//! Invariant: unknown models have no price; it is never guessed.

use throughline_model::Usage;

/// Dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Input that is not cached.
    pub input: f64,
    /// Input read from the cache.
    pub cache_read: f64,
    /// Input written to the cache.
    pub cache_write: f64,
    /// Output.
    pub output: f64,
}

impl Price {
    /// Returns the cost of the usage in dollars.
    pub fn cost_of(&self, usage: &Usage) -> f64 {
        let fresh = usage
            .input
            .saturating_sub(usage.cache_read)
            .saturating_sub(usage.cache_write);
        [
            (fresh, self.input),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
            (usage.output, self.output),
        ]
        .into_iter()
        .map(|(tokens, price)| millions(tokens) * price)
        .sum()
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "token counts are far below the precision of f64"
)]
fn millions(tokens: u64) -> f64 {
    tokens as f64 / 1_000_000.0
}

struct CatalogEntry {
    maker: &'static str,
    name: &'static str,
    window: u64,
    price: Price,
}

const fn catalog_entry(
    maker: &'static str,
    name: &'static str,
    window: u64,
    [input, cached, written, output]: [f64; 4],
) -> CatalogEntry {
    CatalogEntry {
        maker,
        name,
        window,
        price: Price {
            input,
            cache_read: cached,
            cache_write: written,
            output,
        },
    }
}

/// The known models, named as by their makers, without the date of a snapshot.
#[rustfmt::skip]
const CATALOG: [CatalogEntry; 39] = [
    catalog_entry("anthropic", "claude-fable-5-1", 1_000_000, [10.0, 1.0, 12.5, 50.0]),
    catalog_entry("anthropic", "claude-opus-5-5", 1_000_000, [4.0, 0.2, 5.0, 20.0]),
    catalog_entry("anthropic", "claude-opus-5", 1_000_000, [5.0, 0.5, 6.25, 25.0]),
    catalog_entry("anthropic", "claude-sonnet-5-5", 1_000_000, [2.0, 0.1, 2.5, 10.0]),
    catalog_entry("anthropic", "claude-sonnet-5", 1_000_000, [2.0, 0.2, 2.5, 10.0]),
    catalog_entry("anthropic", "claude-haiku-5-5", 1_000_000, [0.1, 0.01, 0.125, 0.5]),
    catalog_entry("anthropic", "claude-opus-4-6", 200_000, [5.0, 0.5, 6.25, 25.0]),
    catalog_entry("anthropic", "claude-opus-4-5", 200_000, [5.0, 0.5, 6.25, 25.0]),
    catalog_entry("anthropic", "claude-opus-4-1", 200_000, [15.0, 1.5, 18.75, 75.0]),
    catalog_entry("anthropic", "claude-opus-4-0", 200_000, [15.0, 1.5, 18.75, 75.0]),
    catalog_entry("anthropic", "claude-opus-4", 200_000, [15.0, 1.5, 18.75, 75.0]),
    catalog_entry("anthropic", "claude-sonnet-4-6", 200_000, [3.0, 0.3, 3.75, 15.0]),
    catalog_entry("anthropic", "claude-sonnet-4-5", 200_000, [3.0, 0.3, 3.75, 15.0]),
    catalog_entry("anthropic", "claude-sonnet-4-0", 200_000, [3.0, 0.3, 3.75, 15.0]),
    catalog_entry("anthropic", "claude-sonnet-4", 200_000, [3.0, 0.3, 3.75, 15.0]),
    catalog_entry("anthropic", "claude-haiku-4-5", 200_000, [1.0, 0.1, 1.25, 5.0]),
    catalog_entry("anthropic", "claude-3-7-sonnet", 200_000, [3.0, 0.3, 3.75, 15.0]),
    catalog_entry("anthropic", "claude-3-5-haiku", 200_000, [0.8, 0.08, 1.0, 4.0]),
    catalog_entry("openai", "gpt-6-astra", 1_050_000, [10.0, 1.0, 12.5, 50.0]),
    catalog_entry("openai", "gpt-6.1-sol", 1_050_000, [2.0, 0.1, 2.5, 10.0]),
    catalog_entry("openai", "gpt-6-sol", 1_050_000, [2.0, 0.2, 2.5, 10.0]),
    catalog_entry("openai", "gpt-6.1-terra", 1_050_000, [1.0, 0.05, 1.25, 5.0]),
    catalog_entry("openai", "gpt-6-luna", 1_050_000, [0.1, 0.01, 0.125, 0.5]),
    catalog_entry("openai", "gpt-5.4", 400_000, [2.5, 0.25, 2.5, 15.0]),
    catalog_entry("openai", "gpt-5.4-mini", 400_000, [0.75, 0.075, 0.75, 4.5]),
    catalog_entry("openai", "gpt-5.2", 400_000, [1.75, 0.175, 1.75, 14.0]),
    catalog_entry("openai", "gpt-5.1", 400_000, [1.25, 0.125, 1.25, 10.0]),
    catalog_entry("openai", "gpt-5", 400_000, [1.25, 0.125, 1.25, 10.0]),
    catalog_entry("openai", "gpt-5-mini", 400_000, [0.25, 0.025, 0.25, 2.0]),
    catalog_entry("openai", "gpt-5-nano", 400_000, [0.05, 0.005, 0.05, 0.4]),
    catalog_entry("openai", "gpt-4.1", 1_047_576, [2.0, 0.5, 2.0, 8.0]),
    catalog_entry("openai", "gpt-4.1-mini", 1_047_576, [0.4, 0.1, 0.4, 1.6]),
    catalog_entry("openai", "gpt-4o", 128_000, [2.5, 1.25, 2.5, 10.0]),
    catalog_entry("openai", "gpt-4o-mini", 128_000, [0.15, 0.075, 0.15, 0.6]),
    catalog_entry("openai", "o3", 200_000, [2.0, 0.5, 2.0, 8.0]),
    catalog_entry("openai", "o4-mini", 200_000, [1.1, 0.275, 1.1, 4.4]),
    catalog_entry("gemini", "gemini-2.5-pro", 1_048_576, [1.25, 0.125, 1.25, 10.0]),
    catalog_entry("gemini", "gemini-2.5-flash", 1_048_576, [0.3, 0.03, 0.3, 2.5]),
    catalog_entry("gemini", "gemini-2.5-flash-lite", 1_048_576, [0.1, 0.01, 0.1, 0.4]),
];

/// Minimum context windows of model families, for models not in the catalog.
const FAMILY_WINDOWS: [(&str, u64); 10] = [
    ("claude-", 200_000),
    ("gpt-6", 1_050_000),
    ("gpt-5", 400_000),
    ("gpt-oss", 131_072),
    ("gemini-", 1_048_576),
    ("deepseek-", 128_000),
    ("mistral-", 128_000),
    ("grok-", 131_072),
    ("llama-3.", 128_000),
    ("llama3.", 128_000),
];

/// Returns the context window of a model in tokens, if known.
pub fn context_window(model: &str) -> Option<u64> {
    let name = normalize_name(model);
    let exact = CATALOG.iter().find(|known| matches_model(known, &name));
    let family = || {
        let mut families = FAMILY_WINDOWS.iter();
        families.find(|(prefix, _)| name.starts_with(prefix))
    };
    exact
        .map(|known| known.window)
        .or_else(|| family().map(|(_, window)| *window))
}

/// Returns the price of a model, if known.
///
/// The catalog has the makers' prices, which OpenRouter charges too.
pub fn price(provider: &str, model: &str) -> Option<Price> {
    let name = normalize_name(model);
    let mut all = CATALOG.iter();
    all.find(|known| {
        matches_model(known, &name) && (provider == known.maker || provider == "openrouter")
    })
    .map(|known| known.price)
}

/// Returns the cost of an answer in dollars, if prices are known.
pub fn cost(provider: &str, model: &str, usage: &Usage) -> Option<f64> {
    price(provider, model).map(|price| price.cost_of(usage))
}

/// Removes the vendor prefix that routers add, and uses the maker's spelling.
fn normalize_name(model: &str) -> String {
    let name = model
        .rsplit('/')
        .next()
        .unwrap_or(model)
        .to_ascii_lowercase();
    if name.starts_with("claude-") {
        name.replace('.', "-")
    } else {
        name
    }
}

/// Whether `name` is the model or a dated snapshot of it.
fn matches_model(known: &CatalogEntry, name: &str) -> bool {
    let is_date = |rest: &str| {
        let digits = rest.chars().filter(char::is_ascii_digit).count();
        digits == 8 && rest.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    name.strip_prefix(known.name)
        .is_some_and(|rest| rest.is_empty() || rest == "-latest" || is_date(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_and_routers_names_are_the_same_model() {
        for model in [
            "claude-sonnet-4-5",
            "claude-sonnet-4-5-20250929",
            "anthropic/claude-sonnet-4.5",
        ] {
            assert_eq!(context_window(model), Some(200_000), "{model}");
            assert_eq!(
                price("openrouter", model).map(|price| price.output),
                Some(15.0)
            );
        }
        assert_eq!(
            price("openai", "gpt-5-2025-08-07").map(|p| p.input),
            Some(1.25)
        );
    }

    #[test]
    fn what_is_not_known_has_no_price() {
        assert_eq!(price("openai", "gpt-5-pro"), None);
        assert_eq!(context_window("gpt-5-pro"), Some(400_000));
        assert_eq!(
            price("groq", "gpt-5"),
            None,
            "other providers charge other prices"
        );
        assert_eq!(
            (price("ollama", "my-model"), context_window("my-model")),
            (None, None)
        );
    }

    #[test]
    fn cached_tokens_cost_what_cached_tokens_cost() {
        let usage = Usage {
            input: 3_000_000,
            output: 1_000_000,
            cache_read: 1_000_000,
            cache_write: 1_000_000,
        };
        let cost = cost("anthropic", "claude-sonnet-4-5", &usage).unwrap();
        assert!((cost - (3.0 + 0.3 + 3.75 + 15.0)).abs() < 1e-9);
    }
}
