//! Definitions of the supported languages.

mod c_family;
mod data;
mod functional;
mod scripts;
mod shells;
mod web;

use super::language::Language;

/// Every language, by family.
pub(super) static ALL: [&[Language]; 6] = [
    c_family::LANGUAGES,
    scripts::LANGUAGES,
    shells::LANGUAGES,
    data::LANGUAGES,
    web::LANGUAGES,
    functional::LANGUAGES,
];
