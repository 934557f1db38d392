"""The client every test gets, and waiting for messages by count instead of by time."""

import time

import pytest
import pytest_asyncio
from azure.servicebus.aio import ServiceBusClient

from endpoint import Endpoint

PATIENCE_SECONDS = 20


@pytest.fixture(scope="session")
def endpoint():
    return Endpoint.from_environment()


@pytest_asyncio.fixture
async def client(endpoint):
    async with ServiceBusClient.from_connection_string(endpoint.connection_string()) as client:
        yield client


@pytest_asyncio.fixture
async def impatient(endpoint):
    """A client that reports the broker's first answer instead of trying again."""
    async with ServiceBusClient.from_connection_string(endpoint.connection_string(), retry_total=0) as client:
        yield client


@pytest.fixture
def send(client):
    """Sends messages to a queue or topic and returns when they are accepted."""

    async def send(entity, *messages):
        async with client.get_queue_sender(entity) as sender:
            await sender.send_messages(list(messages) if len(messages) > 1 else messages[0])

    return send


@pytest.fixture
def receive():
    """Receives exactly `count` messages, in as many calls as it takes."""

    async def receive(receiver, count=1):
        received = []
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while len(received) < count:
            left = give_up_at - time.monotonic()
            assert left > 0, f"only {len(received)} of {count} messages arrived"
            received += await receiver.receive_messages(max_message_count=count - len(received), max_wait_time=left)
        return received

    return receive


@pytest.fixture
def is_empty():
    """Whether nothing at all is stored behind a receiver: not active, locked, deferred or scheduled."""

    async def is_empty(receiver):
        return await receiver.peek_messages(max_message_count=1) == []

    return is_empty
