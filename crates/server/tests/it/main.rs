//! The server as its callers see it: a real one on a port of this machine, on a real
//! store, spoken to over HTTP.

mod clients;
mod harness;
mod openai;
mod sessions;
mod stand_in;
