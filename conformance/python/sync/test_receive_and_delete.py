"""N12: receive-and-delete takes messages for good."""

from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode


def test_ten_messages_are_gone_when_received(client, send, receive, is_empty):
    send("receive-and-delete", *[ServiceBusMessage(str(number)) for number in range(10)])
    with client.get_queue_receiver(
        "receive-and-delete", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE
    ) as receiver:
        messages = receive(receiver, 10)
        assert [str(message) for message in messages] == [str(number) for number in range(10)]
        assert all(message.lock_token is None for message in messages)
        assert is_empty(receiver)
