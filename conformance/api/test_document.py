"""The document itself, as any tool reads it."""

import requests

from access import BASE


def test_the_document_is_open_and_names_its_version():
    document = requests.get(f"{BASE}/api/openapi.json", timeout=20).json()
    assert document["openapi"] == "3.1.0"
    assert "/api/queues/{queue}" in document["paths"]
    assert document["components"]["securitySchemes"]["sharedAccessSignature"]["in"] == "header"


def test_every_reference_leads_somewhere():
    document = requests.get(f"{BASE}/api/openapi.json", timeout=20).json()
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}

    def references(value):
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    assert set(references(document)) <= known
