//! The web page: sessions in a browser.
//!
//! Every view is a complete document that works without scripts: links navigate, forms change
//! things and redirect back. Scripts add live updates: they fetch fragments of the same documents
//! (`?part=…`) and receive changes over `/api/events/ws`.
//!
//! Invariant: message content becomes HTML only through [`markdown`], and a browser runs and loads
//! only what is in [`asset`].

mod actions;
mod admin;
mod asset;
mod chart;
mod entry;
mod entry_log;
mod events;
mod forms;
mod layout;
mod lineage;
mod login;
mod markdown;
mod memory;
mod page_format;
mod request_preview;
mod search;
mod session;
mod session_list;
mod sidebar;
mod status;
mod trash;
mod visitor;

#[cfg(test)]
mod tests;

use axum::Router;
use axum::routing::{MethodRouter, get, post};

pub(crate) use layout::error_page;

use crate::App;

/// The routes of the page.
fn routes() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        ("/", get(session_list::page)),
        ("/new", post(actions::create)),
        ("/search", get(search::page)),
        ("/memory", get(memory::page).post(memory::change_memory)),
        ("/events", get(events::page)),
        ("/trash", get(trash::page)),
        ("/admin", get(admin::page).post(admin::change_tokens)),
        ("/login", get(login::page).post(login::log_in)),
        ("/logout", post(login::log_out)),
        ("/assets/{hash}/{name}", get(asset::serve)),
        ("/s/{id}", get(session::page)),
        ("/s/{id}/entries", get(session::entries_fragment)),
        ("/s/{id}/e/{seq}", get(session::page_at_entry)),
        ("/s/{id}/e/{seq}/text", get(session::message_text)),
        ("/s/{id}/side", get(sidebar::sidebar_fragment)),
        ("/s/{id}/status", get(status::page)),
        ("/s/{id}/gauge", get(status::gauge_fragment)),
        ("/s/{id}/request", get(request_preview::page)),
        ("/s/{id}/lineage", get(lineage::page)),
        ("/s/{id}/log", get(entry_log::page)),
        ("/s/{id}/turns", post(actions::ask)),
        ("/s/{id}/compact", post(actions::compact)),
        ("/s/{id}/undo", post(actions::undo_compaction)),
        ("/s/{id}/clear", post(actions::clear)),
        ("/s/{id}/archive", post(actions::archive)),
        ("/s/{id}/unarchive", post(actions::unarchive)),
        ("/s/{id}/trash", post(actions::trash)),
        ("/s/{id}/restore", post(actions::restore)),
        ("/s/{id}/remove", post(actions::remove)),
        ("/s/{id}/rename", get(forms::rename).post(actions::rename)),
        ("/s/{id}/tags", get(forms::tags).post(actions::set_tags)),
        ("/s/{id}/pin", get(forms::pin).post(actions::pin)),
        ("/s/{id}/unpin", post(actions::unpin)),
        ("/s/{id}/fork", get(forms::fork).post(actions::fork)),
        ("/s/{id}/merge", get(forms::merge).post(actions::merge)),
        ("/s/{id}/rewind", get(forms::rewind).post(actions::rewind)),
    ]
}

/// Builds the router of the page.
pub(crate) fn router() -> Router<App> {
    let routes = routes().into_iter();
    routes.fold(Router::new(), |router, (path, answers)| {
        router.route(path, answers)
    })
}
