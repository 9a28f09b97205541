//! The server as its callers see it: a real one on a port of this machine, on a real
//! store, spoken to over HTTP.

mod access;
mod actions;
mod document;
mod events;
mod harness;
mod hostile;
mod sessions;
mod turns;
