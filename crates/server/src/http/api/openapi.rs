//! The `OpenAPI` 3.1 document, made from the table of endpoints and the types of the model.

use std::sync::LazyLock;

use axum::response::Response;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, HttpMethod, InfoBuilder, OpenApi, OpenApiBuilder, PathItem,
    PathsBuilder, RefOr, Required, ResponseBuilder, Schema,
};

use super::call::{Call, ok};
use super::endpoint::{Endpoint, Schemas, named};
use super::failure::Failure;
use super::model::Problem;
use super::query::{Kind, Parameter};
use super::table::endpoints;

/// The name of the one way to say who one is.
const KEY: &str = "sharedAccessSignature";

/// Answers with the document.
pub(super) async fn document(_: Call) -> Result<Response, Failure> {
    static DOCUMENT: LazyLock<OpenApi> = LazyLock::new(build);
    ok(&*DOCUMENT)
}

/// The document.
pub(super) fn build() -> OpenApi {
    let mut schemas = Schemas::new();
    let mut paths = PathsBuilder::new();
    for endpoint in endpoints() {
        let method = match endpoint.method.as_str() {
            "PUT" => HttpMethod::Put,
            "POST" => HttpMethod::Post,
            "PATCH" => HttpMethod::Patch,
            "DELETE" => HttpMethod::Delete,
            _ => HttpMethod::Get,
        };
        let operation = operation(&endpoint, &mut schemas);
        paths = paths.path(endpoint.path, PathItem::new(method, operation));
    }
    let mut components = ComponentsBuilder::new().security_scheme(
        KEY,
        SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(
            "Authorization",
            "SharedAccessSignature sr=…&sig=…&se=…&skn=…, as for Service Bus",
        ))),
    );
    join_tags(&mut schemas);
    for (name, schema) in schemas {
        components = components.schema(name, schema);
    }
    let info = InfoBuilder::new().title("Vorrang").version(env!("CARGO_PKG_VERSION")).description(Some(
        "Administration of a Vorrang broker. Entity names are one percent-encoded path segment.",
    ));
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components.build())).build()
}

/// Makes the tag of each variant a member of its content.
///
/// The variant is made as "all of" its content and its tag; but contents take no members they do not know,
/// so no value could be both, and whoever believed the document could neither write nor read one.
fn join_tags(schemas: &mut Schemas) {
    let known = schemas.clone();
    for (_, schema) in schemas {
        let RefOr::T(Schema::OneOf(variants)) = schema else { continue };
        for variant in &mut variants.items {
            let RefOr::T(Schema::AllOf(parts)) = &*variant else { continue };
            let [RefOr::Ref(content), RefOr::T(Schema::Object(tag))] = parts.items.as_slice() else {
                continue;
            };
            let found = known.iter().find(|(name, _)| content.ref_location.rsplit('/').next() == Some(name));
            let Some((_, RefOr::T(Schema::Object(content)))) = found else { continue };
            let mut joined = content.clone();
            joined.properties.extend(tag.properties.clone());
            joined.required.extend(tag.required.iter().cloned());
            *variant = joined.into();
        }
    }
}

fn operation(endpoint: &Endpoint, schemas: &mut Schemas) -> utoipa::openapi::path::Operation {
    let mut operation =
        OperationBuilder::new().summary(Some(endpoint.summary)).operation_id(Some(operation_id(endpoint)));
    for name in segments(&endpoint.path) {
        operation = operation.parameter(path_parameter(name));
    }
    for parameter in endpoint.parameters {
        operation = operation.parameter(query_parameter(*parameter));
    }
    if let Some(shape) = endpoint.body {
        let content = ContentBuilder::new().schema(Some(shape(schemas))).build();
        let required = Some(Required::False);
        operation = operation.request_body(Some(
            RequestBodyBuilder::new().content("application/json", content).required(required).build(),
        ));
    }
    for answers in &endpoint.answers {
        let mut response = ResponseBuilder::new().description(endpoint.summary);
        if !answers.content_type.is_empty() {
            let schema = answers.shape.map(|shape| shape(schemas));
            response = response.content(answers.content_type, ContentBuilder::new().schema(schema).build());
        }
        operation = operation.response(answers.status.as_str(), response.build());
    }
    let problem = ContentBuilder::new().schema(Some(named::<Problem>(schemas))).build();
    let failed = ResponseBuilder::new()
        .description("why it was not done, and what to do")
        .content("application/problem+json", problem);
    operation = operation.response("default", failed.build());
    if !endpoint.open {
        operation = operation.security(SecurityRequirement::new(KEY, Vec::<String>::new()));
    }
    operation.build()
}

/// `GET /api/queues/{queue}` as `getQueuesQueue`.
fn operation_id(endpoint: &Endpoint) -> String {
    let words = endpoint.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut id = endpoint.method.as_str().to_ascii_lowercase();
    for word in words.skip(1) {
        let mut letters = word.chars();
        id.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        id.push_str(letters.as_str());
    }
    id
}

/// The names in braces.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> utoipa::openapi::path::Parameter {
    let schema: RefOr<Schema> = match name {
        "mailbox" => words(&["main", "deadletter", "transferdeadletter"]),
        "sequence" | "id" | "link" => whole_number(0, u64::MAX),
        // A snapshot, which is also the name of a file.
        "name" => ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .pattern(Some("^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"))
            .into(),
        _ => {
            let chars = if matches!(name, "queue" | "topic") { 260 } else { 50 };
            ObjectBuilder::new()
                .schema_type(SchemaType::Type(Type::String))
                .min_length(Some(1))
                .max_length(Some(chars))
                .into()
        }
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(schema))
        .build()
}

fn query_parameter(parameter: Parameter) -> utoipa::openapi::path::Parameter {
    let schema: RefOr<Schema> = match parameter.kind {
        Kind::Number(from, to) => whole_number(from, to),
        Kind::Flag => ObjectBuilder::new().schema_type(SchemaType::Type(Type::Boolean)).into(),
        Kind::Text => ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)).into(),
        Kind::Word(known) => words(known),
    };
    ParameterBuilder::new()
        .name(parameter.name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(parameter.help))
        .schema(Some(schema))
        .build()
}

fn words(words: &[&str]) -> RefOr<Schema> {
    let words = words.iter().map(|word| (*word).to_owned());
    ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)).enum_values(Some(words)).into()
}

fn whole_number(from: u64, to: u64) -> RefOr<Schema> {
    let mut schema = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer)).minimum(Some(from));
    if to < u64::MAX {
        schema = schema.maximum(Some(to));
    }
    schema.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tagged_variant_knows_its_tag() {
        let document = serde_json::to_value(build()).unwrap();
        let variants = document["components"]["schemas"]["Filter"]["oneOf"].as_array().unwrap();
        let tags: Vec<&serde_json::Value> =
            variants.iter().map(|variant| &variant["properties"]["type"]["enum"][0]).collect();
        assert_eq!(tags, ["true", "false", "sql", "correlation"]);
        let sql = &variants[2];
        assert_eq!(sql["additionalProperties"], false);
        assert_eq!(sql["required"], serde_json::json!(["expression", "type"]));
    }
}
