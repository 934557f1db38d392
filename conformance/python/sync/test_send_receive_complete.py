"""N1: a message sent is received once, and gone when completed."""

from azure.servicebus import ServiceBusMessage


def test_a_completed_message_leaves_the_queue_empty(client, send, receive, is_empty):
    send("send-receive", ServiceBusMessage("hello", message_id="m-1", subject="greeting"))
    with client.get_queue_receiver("send-receive") as receiver:
        [message] = receive(receiver)
        assert str(message) == "hello"
        assert (message.message_id, message.subject) == ("m-1", "greeting")
        receiver.complete_message(message)
        assert is_empty(receiver)


def test_names_are_compared_without_regard_to_case(client, send, receive):
    send("MIXED.case_NAME-1", ServiceBusMessage("here"))
    with client.get_queue_receiver("mixed.CASE_name-1") as receiver:
        [message] = receive(receiver)
        receiver.complete_message(message)
        assert str(message) == "here"


def test_names_may_hold_slashes_and_be_prefixes_of_each_other(client, send, receive):
    names = ["a", "a/b", "a/b/c"]
    for name in names:
        send(name, ServiceBusMessage(name))
    for name in names:
        with client.get_queue_receiver(name) as receiver:
            [message] = receive(receiver)
            receiver.complete_message(message)
            assert str(message) == name
