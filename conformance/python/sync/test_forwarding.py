"""J1 and J2: queues that pass their messages on."""

from azure.servicebus import ServiceBusMessage


def test_a_forwarding_queue_passes_messages_on_in_order(client, send, receive):
    send("forward-start", *[ServiceBusMessage(str(number)) for number in range(3)])
    with client.get_queue_receiver("forward-end") as receiver:
        messages = receive(receiver, 3)
        assert [str(message) for message in messages] == ["0", "1", "2"]
        for message in messages:
            receiver.complete_message(message)


def test_dead_letters_are_passed_on_with_reason_and_source(client, send, receive):
    send("dead-letter-start", ServiceBusMessage("broken"))
    with client.get_queue_receiver("dead-letter-start") as receiver:
        [message] = receive(receiver)
        receiver.dead_letter_message(message, reason="broken", error_description="in two")
    with client.get_queue_receiver("dead-letter-end") as receiver:
        [dead] = receive(receiver)
        receiver.complete_message(dead)
    assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("broken", "in two")
    assert dead.dead_letter_source == "dead-letter-start"
