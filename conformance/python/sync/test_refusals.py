"""N15 and N16: what is missing and who is not allowed, said quickly and by the right name."""

import time

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import (
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    ServiceBusError,
)


def test_sending_to_a_missing_queue_fails_at_once(client):
    started = time.monotonic()
    with pytest.raises(MessagingEntityNotFoundError):
        with client.get_queue_sender("no-such-queue") as sender:
            sender.send_messages(ServiceBusMessage("lost"))
    assert time.monotonic() - started < 5


def test_receiving_from_a_missing_subscription_fails_at_once(client):
    started = time.monotonic()
    with pytest.raises(MessagingEntityNotFoundError):
        with client.get_subscription_receiver("fan-out", "no-such-subscription") as receiver:
            receiver.receive_messages(max_wait_time=5)
    assert time.monotonic() - started < 5


def test_a_wrong_key_is_an_authentication_error(endpoint):
    string = endpoint.connection_string(key="not-the-key")
    with ServiceBusClient.from_connection_string(string, retry_total=0) as stranger:
        with pytest.raises((ServiceBusAuthenticationError, ServiceBusAuthorizationError)):
            with stranger.get_queue_sender("send-receive") as sender:
                sender.send_messages(ServiceBusMessage("sneaked in"))


def test_receiving_from_a_forwarding_queue_is_refused(impatient):
    with pytest.raises(ServiceBusError):
        with impatient.get_queue_receiver("forward-start") as receiver:
            receiver.receive_messages(max_wait_time=5)
