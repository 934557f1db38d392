"""The patterns' own programs do what their texts say, in every language, against the release binary."""

from collections import Counter

import pytest
from broker import Broker

import programs

#: One round of the sender.
LOW, HIGH = ([f"{priority} message {number} of round 1" for number in range(10)] for priority in ("Low", "High"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broker")
    with Broker(folder, programs.EXAMPLES / "entities.json") as broker:
        broker.certificate = folder / "development-certificate.pem"
        yield broker


@pytest.fixture(scope="module", params=["rust", "python", "javascript"])
def language(request, tmp_path_factory):
    if request.param == "javascript":
        return programs.javascript(tmp_path_factory.mktemp("javascript"))
    return getattr(programs, request.param)()


@pytest.fixture
def environment(language, broker):
    return language.environment(broker.endpoint, broker.certificate)


def test_priority_sender_and_worker(language, environment):
    worker = language.start("priority_worker", environment)
    try:
        sent = language.run("priority_sender", environment, "1")
        assert sent == [f"sent ten messages of priority {priority}" for priority in ("Low", "High")]
        handled = {"High": [], "Low": []}
        while sum(map(len, handled.values())) < 20:
            line = worker.stdout.readline()
            assert line, "the worker ended"
            priority, _, text = line.strip().partition(": ")
            if priority in handled:
                handled[priority].append(text)
        programs.end(worker)
    finally:
        worker.kill()
    assert Counter(handled["High"]) == Counter(HIGH), "each once, by the handler of its priority"
    assert Counter(handled["Low"]) == Counter(LOW)


def test_competing_consumers(language, environment):
    # The first language makes the queue, the others find it.
    written = language.run("competing_consumers", environment)
    assert written[-1].startswith("100 messages"), written
    assert "resumed" in written
