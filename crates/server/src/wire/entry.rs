//! JSON representation of an entry.

use serde::Serialize;
use throughline::Entry;
use utoipa::openapi::schema::{KnownFormat, Schema, SchemaFormat, Type};
use utoipa::openapi::{ObjectBuilder, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// An entry: its position in the session, then its content, by `kind`.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct EntryView(pub(crate) Entry);

impl PartialSchema for EntryView {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let number = || {
            ObjectBuilder::new()
                .schema_type(Type::Integer)
                .minimum(Some(1))
        };
        let format = |format| text().format(Some(SchemaFormat::KnownFormat(format)));
        ObjectBuilder::new()
            .description(Some(
                "An entry: its position in the session, then its content, by `kind`.",
            ))
            .property("seq", number())
            .required("seq")
            .property(
                "id",
                text().format(Some(SchemaFormat::Custom("uuid".to_owned()))),
            )
            .required("id")
            .property("at", format(KnownFormat::DateTime))
            .required("at")
            .property("kind", text())
            .required("kind")
            .property("digest", text())
            .required("digest")
            .additional_properties(Some(
                utoipa::openapi::schema::AdditionalProperties::FreeForm(true),
            ))
            .into()
    }
}

impl ToSchema for EntryView {}
