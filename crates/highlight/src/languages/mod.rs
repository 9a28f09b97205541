//! The languages that are highlighted.

mod braces;
mod data;
mod functional;
mod scripts;
mod shells;
mod web;

use super::language::Language;

/// Every language, by family.
pub(super) static ALL: [&[Language]; 6] = [
    braces::LANGUAGES,
    scripts::LANGUAGES,
    shells::LANGUAGES,
    data::LANGUAGES,
    web::LANGUAGES,
    functional::LANGUAGES,
];
