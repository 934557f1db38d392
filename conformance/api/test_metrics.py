"""The metrics text as Prometheus' own tools read it, after a queue with awkward names has been used."""

import math
import os
import subprocess
import urllib.parse

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from access import BASE, token

QUEUE = "metrics/it's-größe"
CLASS = "gold-größe.1"
KINDS = {"counter", "gauge", "histogram"}


@pytest.fixture(scope="module")
def text():
    """A scrape of a broker that has created, sent, received and completed."""
    headers = {"Authorization": token()}
    queue = f"{BASE}/api/queues/{urllib.parse.quote(QUEUE, safe='')}"
    properties = {"classes": [{"name": CLASS, "level": 100, "targetWait": "10s"}], "maxDeliveryCount": 1}
    requests.put(queue, json=properties, headers=headers, timeout=20).raise_for_status()
    messages = [{"body": {"text": "x"}, "level": level} for level in (100, 100, 1, 42)]
    requests.post(f"{queue}/messages", json=messages, headers=headers, timeout=20).raise_for_status()
    head = f"{BASE}/{urllib.parse.quote(QUEUE)}/messages/head?timeout=5"
    requests.delete(head, headers=headers, timeout=20).raise_for_status()
    answer = requests.get(f"{BASE}/metrics", timeout=20)
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return answer.text


@pytest.fixture(scope="module")
def families(text):
    return list(text_string_to_metric_families(text))


def test_every_family_is_introduced_once_with_help_and_a_type(text, families):
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    assert text.count("# HELP ") == text.count("# TYPE ") == len(families)
    for family in families:
        assert family.documentation.strip(), family.name
        assert family.type in KINDS, (family.name, family.type)
        assert family.name.startswith(("vorrang_", "process_")), family.name


def test_no_series_comes_twice_and_every_value_is_a_number(families):
    seen = set()
    for family in families:
        for sample in family.samples:
            series = (sample.name, tuple(sorted(sample.labels.items())))
            assert series not in seen, series
            seen.add(series)
            assert not math.isnan(sample.value), series
            assert sample.value >= 0 or family.type == "gauge", series


def test_buckets_grow_to_infinity_and_agree_with_the_count(families):
    histograms = [family for family in families if family.type == "histogram" and family.samples]
    assert "vorrang_wait_seconds" in {family.name for family in histograms}
    for family in histograms:
        buckets, counts, sums = {}, {}, set()
        for sample in family.samples:
            series = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
            if sample.name.endswith("_bucket"):
                buckets.setdefault(series, []).append((float(sample.labels["le"]), sample.value))
            elif sample.name.endswith("_count"):
                counts[series] = sample.value
            else:
                sums.add(series)
        assert set(buckets) == set(counts) == sums, family.name
        for series, steps in buckets.items():
            bounds = [bound for bound, _ in steps]
            values = [value for _, value in steps]
            assert bounds == sorted(set(bounds)) and bounds[-1] == math.inf, (family.name, series)
            assert values == sorted(values) and values[-1] == counts[series], (family.name, series)


def test_names_of_entities_and_classes_come_back_as_they_were_given(families):
    samples = {family.name: family.samples for family in families}
    labels = {"entity": QUEUE, "class": CLASS, "state": "active"}
    [active] = [sample for sample in samples["vorrang_messages"] if sample.labels == labels]
    assert active.value == 1, "two were sent and one was taken"
    [taken] = [
        sample
        for sample in samples["vorrang_wait_seconds"]
        if sample.name == "vorrang_wait_seconds_count" and sample.labels == {"entity": QUEUE, "class": CLASS}
    ]
    assert taken.value == 1


def test_labels_come_from_bounded_sets(families):
    words = {
        "state": {"active", "locked", "deferred", "scheduled", "delayed", "dead_letter", "transfer_dead_letter"}
        | {"ok", "at_risk", "breached"},
        "window": {"5m", "1h", "24h"},
        "kind": {"queue", "topic", "subscription", "sender", "receiver", "requests", "coordinator"},
        "direction": {"in", "out"},
        "transport": {"plain", "tls", "websocket"},
    }
    classes = {}
    for family in families:
        for sample in family.samples:
            for name, value in sample.labels.items():
                assert name not in words or value in words[name], (sample.name, name, value)
                assert name in words or name in {"entity", "class", "reason", "le", "version"}, (sample.name, name)
            if "class" in sample.labels:
                classes.setdefault(sample.labels["entity"], set()).add(sample.labels["class"])
    assert len(classes) <= 1_001
    assert all(len(names) <= 17 for names in classes.values())


def test_promtool_has_nothing_to_say(text):
    checker = [os.environ.get("VORRANG_PROMTOOL", "promtool"), "check", "metrics"]
    checked = subprocess.run(checker, input=text, capture_output=True, text=True, timeout=20, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
