"""N17: large messages pass whole, too large ones are refused by name."""

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageSizeExceededError


@pytest.mark.parametrize("kilobytes", [1, 100, 250])
def test_a_large_message_arrives_whole(client, send, receive, kilobytes):
    body = bytes(range(256)) * 4 * kilobytes
    send("sizes", ServiceBusMessage(body))
    with client.get_queue_receiver("sizes") as receiver:
        [message] = receive(receiver)
        receiver.complete_message(message)
    assert b"".join(message.body) == body


def test_a_message_beyond_the_limit_is_refused_and_the_sender_lives_on(client, receive):
    with client.get_queue_sender("sizes") as sender:
        with pytest.raises(MessageSizeExceededError):
            sender.send_messages(ServiceBusMessage(b"x" * 4 * 1024 * 1024))
        sender.send_messages(ServiceBusMessage("small"))
    with client.get_queue_receiver("sizes") as receiver:
        [message] = receive(receiver)
        receiver.complete_message(message)
        assert str(message) == "small"
