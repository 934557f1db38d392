"""The client every test gets, and waiting for messages by count instead of by time."""

import time

import pytest
from azure.servicebus import ServiceBusClient

from endpoint import Endpoint

PATIENCE_SECONDS = 20


@pytest.fixture(scope="session")
def endpoint():
    return Endpoint.from_environment()


@pytest.fixture
def client(endpoint):
    with ServiceBusClient.from_connection_string(endpoint.connection_string()) as client:
        yield client


@pytest.fixture
def impatient(endpoint):
    """A client that reports the broker's first answer instead of trying again."""
    with ServiceBusClient.from_connection_string(endpoint.connection_string(), retry_total=0) as client:
        yield client


@pytest.fixture
def send(client):
    """Sends messages to a queue or topic and returns when they are accepted."""

    def send(entity, *messages):
        with client.get_queue_sender(entity) as sender:
            sender.send_messages(list(messages) if len(messages) > 1 else messages[0])

    return send


@pytest.fixture
def receive():
    """Receives exactly `count` messages, in as many calls as it takes."""

    def receive(receiver, count=1):
        received = []
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while len(received) < count:
            left = give_up_at - time.monotonic()
            assert left > 0, f"only {len(received)} of {count} messages arrived"
            received += receiver.receive_messages(max_message_count=count - len(received), max_wait_time=left)
        return received

    return receive


@pytest.fixture
def is_empty():
    """Whether nothing at all is stored behind a receiver: not active, locked, deferred or scheduled."""
    return lambda receiver: receiver.peek_messages(max_message_count=1) == []
