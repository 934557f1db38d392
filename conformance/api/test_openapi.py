"""The OpenAPI document against the broker that serves it: schemathesis asks what the document allows and what it
forbids, and holds every answer to it. A run is bounded by the number of examples for each operation.
"""

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from access import BASE, token

EXAMPLES = 4

# A stream of events never ends; it has tests of its own. Purge and replay say `max`, so that a lucky guess ends soon.
schema = schemathesis.openapi.from_url(f"{BASE}/api/openapi.json").exclude(path="/api/$events")

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    unsupported_method,
]


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_the_document_says(case):
    case.call_and_validate(headers={"Authorization": token()}, checks=CHECKS, timeout=20)


@schema.parametrize()
@settings(max_examples=1, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_nothing_is_told_without_a_token(case):
    response = case.call(headers={"Authorization": "SharedAccessSignature sr=x&sig=x&se=1&skn=x"}, timeout=20)
    if case.path == "/api/openapi.json":
        assert response.status_code in (200, 405)
        return
    assert response.status_code in (400, 401, 404, 405), response.text
    case.validate_response(response, checks=[not_a_server_error, content_type_conformance, response_schema_conformance])
