"""N15 to N17: what is missing, not allowed or too large, said by the right name."""

import time

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.exceptions import (
    MessageSizeExceededError,
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
)


async def test_sending_to_a_missing_queue_fails_at_once(client):
    started = time.monotonic()
    with pytest.raises(MessagingEntityNotFoundError):
        async with client.get_queue_sender("no-such-queue") as sender:
            await sender.send_messages(ServiceBusMessage("lost"))
    assert time.monotonic() - started < 5


async def test_a_wrong_key_is_an_authentication_error(endpoint):
    string = endpoint.connection_string(key="not-the-key")
    async with ServiceBusClient.from_connection_string(string, retry_total=0) as stranger:
        with pytest.raises((ServiceBusAuthenticationError, ServiceBusAuthorizationError)):
            async with stranger.get_queue_sender("send-receive") as sender:
                await sender.send_messages(ServiceBusMessage("sneaked in"))


async def test_large_messages_pass_and_too_large_ones_are_refused(client, send, receive):
    body = "x" * 250 * 1024
    await send("sizes", ServiceBusMessage(body))
    async with client.get_queue_receiver("sizes") as receiver:
        [message] = await receive(receiver)
        await receiver.complete_message(message)
        assert str(message) == body
    with pytest.raises(MessageSizeExceededError):
        await send("sizes", ServiceBusMessage("x" * 4 * 1024 * 1024))
