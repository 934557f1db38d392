"""N4: every outcome a receiver can choose."""

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.exceptions import MessageAlreadySettled, MessageNotFoundError


def test_an_abandoned_message_comes_back_first_and_counts_the_attempt(client, send, receive):
    send("abandon", ServiceBusMessage("first"), ServiceBusMessage("second"))
    with client.get_queue_receiver("abandon") as receiver:
        [message] = receive(receiver)
        assert (str(message), message.delivery_count) == ("first", 0)
        receiver.abandon_message(message)

        again, second = receive(receiver, 2)
        assert (str(again), again.delivery_count) == ("first", 1)
        assert again.sequence_number == message.sequence_number
        assert again.lock_token != message.lock_token
        assert (str(second), second.delivery_count) == ("second", 0)
        receiver.complete_message(again)
        receiver.complete_message(second)


def test_a_deferred_message_is_only_received_by_its_sequence_number(impatient, send, receive, is_empty):
    send("defer", ServiceBusMessage("later"))
    with impatient.get_queue_receiver("defer") as receiver:
        [message] = receive(receiver)
        receiver.defer_message(message)
        assert receiver.receive_messages(max_wait_time=1) == []

        [deferred] = receiver.receive_deferred_messages(message.sequence_number)
        assert str(deferred) == "later"
        receiver.complete_message(deferred)
        assert is_empty(receiver)
        with pytest.raises(MessageNotFoundError):
            receiver.receive_deferred_messages(message.sequence_number)


def test_a_dead_lettered_message_keeps_its_reason_and_its_source(client, send, receive):
    send("dead-letter", ServiceBusMessage("broken", application_properties={"kept": 7}))
    with client.get_queue_receiver("dead-letter") as receiver:
        [message] = receive(receiver)
        receiver.dead_letter_message(message, reason="bad form", error_description="no total")

    with client.get_queue_receiver("dead-letter", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        [dead] = receive(receiver)
        assert str(dead) == "broken"
        assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("bad form", "no total")
        assert dead.application_properties[b"kept"] == 7
        assert dead.dead_letter_source == "dead-letter"
        receiver.complete_message(dead)


def test_a_message_is_settled_only_once(client, send, receive):
    send("settle-elsewhere", ServiceBusMessage("once"))
    with client.get_queue_receiver("settle-elsewhere") as receiver:
        [message] = receive(receiver)
        receiver.complete_message(message)
        with pytest.raises(MessageAlreadySettled):
            receiver.abandon_message(message)


def test_messages_of_a_session_are_dead_lettered_to_a_plain_queue(client, send, receive):
    send("session-dead-letter", ServiceBusMessage("broken", session_id="s"))
    with client.get_queue_receiver("session-dead-letter", session_id=NEXT_AVAILABLE_SESSION) as receiver:
        [message] = receive(receiver)
        receiver.dead_letter_message(message, reason="session")

    dead_letters = client.get_queue_receiver("session-dead-letter", sub_queue=ServiceBusSubQueue.DEAD_LETTER)
    with dead_letters as receiver:
        [dead] = receive(receiver)
        assert (dead.session_id, dead.dead_letter_reason) == ("s", "session")
        receiver.complete_message(dead)
