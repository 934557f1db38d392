"""D14: within the window an id is stored once."""

from azure.servicebus import ServiceBusMessage


def test_a_second_message_with_the_same_id_is_accepted_and_dropped(client, send, receive, is_empty):
    send("duplicates", ServiceBusMessage("first", message_id="one"))
    send("duplicates", ServiceBusMessage("again", message_id="one"))
    send("duplicates", ServiceBusMessage("other", message_id="two"), ServiceBusMessage("third", message_id="one"))
    with client.get_queue_receiver("duplicates") as receiver:
        messages = receive(receiver, 2)
        assert [str(message) for message in messages] == ["first", "other"]
        for message in messages:
            receiver.complete_message(message)
        send("duplicates", ServiceBusMessage("completed before", message_id="one"))
        assert is_empty(receiver)
