//! The page: sessions for people, in a browser.

use axum::Router;

use crate::App;

/// Everything that is not an API.
pub(crate) fn router() -> Router<App> {
    Router::new()
}
