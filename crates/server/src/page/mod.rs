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

#[cfg(test)]
mod tests;

use axum::Router;
use axum::routing::{MethodRouter, get, post};

pub(crate) use layout::failed;

use crate::App;

/// Every path of the page, and what answers there.
fn routes() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        ("/", get(list::page)),
        ("/new", post(actions::create)),
        ("/search", get(search::page)),
        ("/memory", get(memory::page).post(memory::change)),
        ("/events", get(events::page)),
        ("/trash", get(trash::page)),
        ("/admin", get(admin::page).post(admin::change)),
        ("/login", get(login::page).post(login::enter)),
        ("/logout", post(login::leave)),
        ("/assets/{hash}/{name}", get(asset::serve)),
        ("/s/{id}", get(session::page)),
        ("/s/{id}/entries", get(session::part)),
        ("/s/{id}/e/{seq}", get(session::at)),
        ("/s/{id}/e/{seq}/text", get(session::text)),
        ("/s/{id}/side", get(side::part)),
        ("/s/{id}/status", get(status::page)),
        ("/s/{id}/gauge", get(status::part)),
        ("/s/{id}/request", get(preview::page)),
        ("/s/{id}/lineage", get(lineage::page)),
        ("/s/{id}/log", get(log::page)),
        ("/s/{id}/turns", post(actions::ask)),
        ("/s/{id}/compact", post(actions::compact)),
        ("/s/{id}/undo", post(actions::undo)),
        ("/s/{id}/clear", post(actions::clear)),
        ("/s/{id}/archive", post(actions::archive)),
        ("/s/{id}/unarchive", post(actions::unarchive)),
        ("/s/{id}/trash", post(actions::trash)),
        ("/s/{id}/restore", post(actions::restore)),
        ("/s/{id}/remove", post(actions::remove)),
        ("/s/{id}/rename", get(forms::rename).post(actions::rename)),
        ("/s/{id}/tags", get(forms::tags).post(actions::tags)),
        ("/s/{id}/pin", get(forms::pin).post(actions::pin)),
        ("/s/{id}/unpin", post(actions::unpin)),
        ("/s/{id}/fork", get(forms::fork).post(actions::fork)),
        ("/s/{id}/merge", get(forms::merge).post(actions::merge)),
        ("/s/{id}/rewind", get(forms::rewind).post(actions::rewind)),
    ]
}

/// Everything that is not an API.
pub(crate) fn router() -> Router<App> {
    let routes = routes().into_iter();
    routes.fold(Router::new(), |router, (path, answers)| {
        router.route(path, answers)
    })
}
