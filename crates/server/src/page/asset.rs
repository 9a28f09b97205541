//! Style sheets, scripts and the icon, compiled into the program.
//!
//! Their URLs contain a hash of the content, so that browsers may cache them forever.

use std::fmt::Write as _;

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;
use throughline::Digest;

use crate::Problem;

#[derive(RustEmbed)]
#[folder = "assets/"]
struct Assets;

/// Hash of all assets.
fn assets_hash() -> String {
    let mut all = String::new();
    let mut names: Vec<_> = Assets::iter().collect();
    names.sort_unstable();
    for name in names {
        if let Some(file) = Assets::get(&name) {
            let _ = writeln!(all, "{name} {}", Digest::of(&file.data));
        }
    }
    Digest::of(all.as_bytes()).short()
}

/// URL of an asset.
pub(super) fn url(name: &str) -> String {
    use std::sync::LazyLock;
    static HASH: LazyLock<String> = LazyLock::new(assets_hash);
    // In debug builds, files are read from disk each time.
    if cfg!(debug_assertions) {
        return format!("/assets/{}/{name}", assets_hash());
    }
    format!("/assets/{}/{name}", *HASH)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

pub(super) async fn serve(Path((asked, name)): Path<(String, String)>) -> Response {
    // A URL of another version must not be cached as this one.
    let same = url(&name) == format!("/assets/{asked}/{name}");
    match Assets::get(&name) {
        Some(file) if same => {
            let headers = [
                (header::CONTENT_TYPE, content_type(&name)),
                (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
            ];
            (headers, file.data.into_owned()).into_response()
        }
        _ => Problem::not_found("no_such_path", "there is no such file").into_response(),
    }
}
