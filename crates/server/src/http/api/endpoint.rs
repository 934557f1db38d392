//! One row of the API's table: what is asked how, and who answers. The routes and the `OpenAPI` document are
//! made from the same rows, so that neither can know what the other does not.

use axum::http::{Method, StatusCode};
use axum::response::Response;
use futures_util::future::BoxFuture;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::call::Call;
use super::failure::Failure;
use super::model::Page;
use super::query::Parameter;

/// Answers a request.
pub(super) type Handler = fn(Call) -> BoxFuture<'static, Result<Response, Failure>>;

/// Says what a body looks like, and adds the types it is made of to the list.
pub(super) type Shape = fn(&mut Schemas) -> RefOr<Schema>;

/// Types by name.
pub(super) type Schemas = Vec<(String, RefOr<Schema>)>;

/// One method of one path.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) summary: &'static str,
    pub(super) parameters: &'static [Parameter],
    pub(super) body: Option<Shape>,
    pub(super) answers: Vec<Answers>,
    pub(super) handler: Handler,
    /// Whether anybody may ask.
    pub(super) open: bool,
}

/// What is answered when all is well.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answers {
    pub(super) status: StatusCode,
    pub(super) content_type: &'static str,
    pub(super) shape: Option<Shape>,
}

impl Endpoint {
    pub(super) fn new(
        method: Method,
        path: impl Into<String>,
        summary: &'static str,
        handler: Handler,
    ) -> Endpoint {
        let (path, parameters) = (path.into(), &[][..]);
        Endpoint { method, path, summary, parameters, body: None, answers: Vec::new(), handler, open: false }
    }

    pub(super) fn query(self, parameters: &'static [Parameter]) -> Endpoint {
        Endpoint { parameters, ..self }
    }

    pub(super) fn body(self, body: Shape) -> Endpoint {
        Endpoint { body: Some(body), ..self }
    }

    /// Answers this JSON with 200.
    pub(super) fn ok(self, shape: Shape) -> Endpoint {
        self.answers(StatusCode::OK, "application/json", Some(shape))
    }

    /// Answers this JSON with 201.
    pub(super) fn created(self, shape: Shape) -> Endpoint {
        self.answers(StatusCode::CREATED, "application/json", Some(shape))
    }

    /// Answers nothing with 204.
    pub(super) fn done(self) -> Endpoint {
        self.answers(StatusCode::NO_CONTENT, "", None)
    }

    pub(super) fn answers(
        mut self,
        status: StatusCode,
        content_type: &'static str,
        shape: Option<Shape>,
    ) -> Endpoint {
        self.answers.push(Answers { status, content_type, shape });
        self
    }

    pub(super) fn open(self) -> Endpoint {
        Endpoint { open: true, ..self }
    }
}

/// A type by its name.
pub(super) fn named<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
    Ref::from_schema_name(T::name()).into()
}

/// A page of these, as it is: a type that is generic has no name of its own.
pub(super) fn page<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    named::<T>(schemas);
    Page::<T>::schema()
}
