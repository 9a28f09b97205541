//! OpenAPI descriptions of the path parameters and headers that extractors read.

use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{Required, Schema};

use crate::extract::{CallerSession, IdempotencyKey, IfMatch};

fn string_parameter(name: &str, location: ParameterIn, about: &str) -> Vec<Parameter> {
    let text = SchemaType::new(Type::String);
    let (kind, required) = match location {
        ParameterIn::Path => (text, Required::True),
        _ => {
            let or_none = SchemaType::from_iter([Type::String, Type::Null]);
            (or_none, Required::False)
        }
    };
    let schema = Schema::Object(ObjectBuilder::new().schema_type(kind).build());
    let parameter = ParameterBuilder::new()
        .name(name)
        .parameter_in(location)
        .required(required)
        .description(Some(about))
        .schema(Some(schema));
    vec![parameter.build()]
}

impl IntoParams for CallerSession {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        string_parameter("id", ParameterIn::Path, "Session id")
    }
}

impl IntoParams for IfMatch {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let about = "The head the caller expects";
        string_parameter("If-Match", ParameterIn::Header, about)
    }
}

impl IntoParams for IdempotencyKey {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let about = "Unique key of the operation, so that a retry takes effect once";
        string_parameter("Idempotency-Key", ParameterIn::Header, about)
    }
}
