"""N3: an empty queue gives an empty result, and the receiver lives on."""

import time

from azure.servicebus import ServiceBusMessage


def test_receiving_from_an_empty_queue_returns_nothing_after_the_wait(client, send, receive):
    with client.get_queue_receiver("empty-receive") as receiver:
        started = time.monotonic()
        assert receiver.receive_messages(max_message_count=5, max_wait_time=2) == []
        assert 1.5 < time.monotonic() - started < 5

        send("empty-receive", ServiceBusMessage("late"))
        [message] = receive(receiver)
        receiver.complete_message(message)
        assert str(message) == "late"


def test_a_receiver_already_waiting_gets_the_message_at_once(client, send):
    with client.get_queue_receiver("empty-receive") as receiver:
        assert receiver.receive_messages(max_wait_time=1) == []
        send("empty-receive", ServiceBusMessage("awaited"))
        started = time.monotonic()
        [message] = receiver.receive_messages(max_wait_time=30)
        receiver.complete_message(message)
        assert time.monotonic() - started < 5
