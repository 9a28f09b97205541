//! The page: sessions for people, in a browser.
//!
//! Every view is a whole document that works without a script: links lead on, forms
//! change things and lead back. Scripts make it live: they fetch the same parts the
//! documents are made of (`?part=…`) and put them in place, and hear of changes over
//! `/api/events/ws`.
//!
//! Invariant: nothing that was said becomes markup but through [`markdown`], and a
//! browser runs nothing and loads nothing that is not in [`asset`].

mod actions;
mod admin;
mod asset;
mod chart;
mod entry;
mod events;
mod forms;
mod layout;
mod lineage;
mod list;
mod log;
mod login;
mod markdown;
mod memory;
mod preview;
mod search;
mod session;
mod side;
mod status;
mod trash;
mod visitor;
mod words;

use axum::Router;
use axum::routing::{get, post};

use crate::App;

/// Everything that is not an API.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/", get(list::page))
        .route("/new", post(actions::create))
        .route("/search", get(search::page))
        .route("/memory", get(memory::page).post(memory::change))
        .route("/events", get(events::page))
        .route("/trash", get(trash::page))
        .route("/admin", get(admin::page).post(admin::change))
        .route("/login", get(login::page).post(login::enter))
        .route("/logout", post(login::leave))
        .route("/assets/{hash}/{name}", get(asset::serve))
        .route("/s/{id}", get(session::page))
        .route("/s/{id}/entries", get(session::part))
        .route("/s/{id}/e/{seq}", get(session::at))
        .route("/s/{id}/e/{seq}/text", get(session::text))
        .route("/s/{id}/side", get(side::part))
        .route("/s/{id}/status", get(status::page))
        .route("/s/{id}/gauge", get(status::part))
        .route("/s/{id}/request", get(preview::page))
        .route("/s/{id}/lineage", get(lineage::page))
        .route("/s/{id}/log", get(log::page))
        .route("/s/{id}/turns", post(actions::ask))
        .route("/s/{id}/compact", post(actions::compact))
        .route("/s/{id}/undo", post(actions::undo))
        .route("/s/{id}/clear", post(actions::clear))
        .route("/s/{id}/archive", post(actions::archive))
        .route("/s/{id}/unarchive", post(actions::unarchive))
        .route("/s/{id}/trash", post(actions::trash))
        .route("/s/{id}/restore", post(actions::restore))
        .route("/s/{id}/remove", post(actions::remove))
        .route("/s/{id}/rename", get(forms::rename).post(actions::rename))
        .route("/s/{id}/tags", get(forms::tags).post(actions::tags))
        .route("/s/{id}/pin", get(forms::pin).post(actions::pin))
        .route("/s/{id}/unpin", post(actions::unpin))
        .route("/s/{id}/fork", get(forms::fork).post(actions::fork))
        .route("/s/{id}/merge", get(forms::merge).post(actions::merge))
        .route("/s/{id}/rewind", get(forms::rewind).post(actions::rewind))
}
