//! Renders docs/openapi.json as a Markdown page: every operation with its parameters, body and
//! responses, then every type with its fields.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

const HEADER: &str = "\
<!-- Generated from docs/openapi.json by `cargo xtask docs`. Do not edit. -->

# HTTP reference

Every operation and type of the native API, generated from [openapi.json](../openapi.json), which a server
also serves at `/api/openapi.json`. What it cannot say (authentication, streams, limits) is in
[HTTP](../http.md). Errors are `application/problem+json`.
";

/// One method of one path.
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    value: &'a Value,
}

/// Renders the page for an OpenAPI document.
pub(crate) fn render(text: &str) -> Result<String> {
    let document: Value = serde_json::from_str(text)?;
    let paths = document["paths"]
        .as_object()
        .context("the OpenAPI document has no paths")?;
    let mut by_tag: BTreeMap<&str, Vec<Operation<'_>>> = BTreeMap::new();
    for (path, methods) in paths {
        for method in METHODS {
            let value = &methods[method];
            if value.is_null() {
                continue;
            }
            let tag = value["tags"][0].as_str().unwrap_or("other");
            by_tag.entry(tag).or_default().push(Operation {
                method,
                path,
                value,
            });
        }
    }
    let mut page = HEADER.to_owned();
    for (tag, operations) in &by_tag {
        write!(page, "\n## {}\n", capitalize(tag))?;
        for operation in operations {
            render_operation(&mut page, operation)?;
        }
    }
    page.push_str("\n## Types\n");
    if let Some(schemas) = document["components"]["schemas"].as_object() {
        for (name, schema) in schemas {
            render_schema(&mut page, name, schema)?;
        }
    }
    Ok(page)
}

fn render_operation(page: &mut String, operation: &Operation<'_>) -> Result<()> {
    let Operation {
        method,
        path,
        value,
    } = operation;
    write!(page, "\n### `{} {path}`\n\n", method.to_uppercase())?;
    for part in ["summary", "description"] {
        if let Some(text) = value[part].as_str() {
            write!(page, "{}\n\n", text.trim())?;
        }
    }
    if let Some(id) = value["operationId"].as_str() {
        writeln!(page, "Operation: `{id}`")?;
    }
    let parameters = value["parameters"].as_array();
    if let Some(parameters) = parameters.filter(|parameters| !parameters.is_empty()) {
        page.push_str("\n| parameter | in | type | |\n|---|---|---|---|\n");
        for parameter in parameters {
            writeln!(
                page,
                "| `{}`{} | {} | {} | {} |",
                str_or_empty(&parameter["name"]),
                required_mark(parameter["required"] == true),
                str_or_empty(&parameter["in"]),
                type_of(&parameter["schema"]),
                table_cell(&parameter["description"]),
            )?;
        }
    }
    if let Some(content) = value["requestBody"]["content"].as_object() {
        writeln!(page, "\nBody: {}", content_types(content))?;
    }
    page.push_str("\nAnswers:\n\n");
    let mut errors = Vec::new();
    for (status, answer) in value["responses"].as_object().into_iter().flatten() {
        if status.starts_with(['4', '5']) {
            errors.push(format!("`{status}`"));
            continue;
        }
        let content = answer["content"].as_object().map(content_types);
        let description = answer["description"].as_str().unwrap_or_default();
        let parts = [description.trim().to_owned(), content.unwrap_or_default()];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        writeln!(page, "- `{status}` {}", parts.join(": "))?;
    }
    if !errors.is_empty() {
        writeln!(page, "- errors: {}", errors.join(", "))?;
    }
    Ok(())
}

fn render_schema(page: &mut String, name: &str, schema: &Value) -> Result<()> {
    write!(page, "\n### {name}\n\n")?;
    if let Some(description) = schema["description"].as_str() {
        write!(page, "{}\n\n", description.trim())?;
    }
    let fields = fields(schema);
    if fields.is_empty() {
        writeln!(page, "{}", type_of(schema))?;
        return Ok(());
    }
    page.push_str("| field | type | |\n|---|---|---|\n");
    for (field, value, is_required) in fields {
        writeln!(
            page,
            "| `{field}`{} | {} | {} |",
            required_mark(is_required),
            type_of(value),
            table_cell(&value["description"]),
        )?;
    }
    Ok(())
}

/// Returns the fields of an object, including those of the objects it is composed of.
fn fields(schema: &Value) -> Vec<(&str, &Value, bool)> {
    let mut found = Vec::new();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        found.extend(fields(part));
    }
    let names = schema["required"].as_array();
    let is_required = |name: &str| names.is_some_and(|names| names.iter().any(|n| n == name));
    for (name, value) in schema["properties"].as_object().into_iter().flatten() {
        found.push((name.as_str(), value, is_required(name)));
    }
    found
}

/// Describes the type of a schema: `string`, `array of Entry`, `Fact or null`.
fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or(name);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for (key, joint) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        if let Some(parts) = schema[key].as_array() {
            let parts: Vec<_> = parts.iter().map(type_of).collect();
            return parts.join(joint);
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
        return values.join(", ");
    }
    match &schema["type"] {
        Value::Array(types) => {
            let one = |name: &Value| match str_or_empty(name) {
                "array" => array_of(schema),
                name => name.to_owned(),
            };
            types.iter().map(one).collect::<Vec<_>>().join(" or ")
        }
        Value::String(name) if name == "array" => array_of(schema),
        Value::String(name) if name == "object" && !schema["properties"].is_null() => {
            let names = fields(schema).into_iter();
            let names: Vec<_> = names.map(|(name, ..)| format!("`{name}`")).collect();
            format!("object with {}", names.join(", "))
        }
        Value::String(name) => name.clone(),
        _ => "any".to_owned(),
    }
}

fn array_of(schema: &Value) -> String {
    format!("array of {}", type_of(&schema["items"]))
}

fn content_types(content: &Map<String, Value>) -> String {
    let one = |(name, value): (&String, &Value)| match &value["schema"] {
        Value::Null => format!("`{name}`"),
        schema => format!("`{name}`, {}", type_of(schema)),
    };
    content.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn required_mark(is_required: bool) -> &'static str {
    if is_required { " *" } else { "" }
}

fn str_or_empty(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Formats a text as a table cell.
fn table_cell(value: &Value) -> String {
    let words: Vec<_> = str_or_empty(value).split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}

fn capitalize(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}
