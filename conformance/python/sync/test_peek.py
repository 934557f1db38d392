"""N7: looking without taking."""

from datetime import datetime, timedelta, timezone

from azure.servicebus import ServiceBusMessage, ServiceBusMessageState


def test_peeking_starts_anywhere_and_changes_nothing(client, send, receive):
    send("peek", *[ServiceBusMessage(str(number)) for number in range(20)])
    with client.get_queue_receiver("peek") as receiver:
        first = receiver.peek_messages(max_message_count=10)
        assert [str(message) for message in first] == [str(number) for number in range(10)]
        rest = receiver.peek_messages(max_message_count=100, sequence_number=first[-1].sequence_number + 1)
        assert [str(message) for message in rest] == [str(number) for number in range(10, 20)]

        received = receive(receiver, 20)
        assert all(message.delivery_count == 0 for message in received)
        for message in received:
            receiver.complete_message(message)


def test_peeking_shows_active_deferred_and_scheduled_messages(client, send, receive):
    send("peek-states", ServiceBusMessage("deferred"), ServiceBusMessage("active"))
    with client.get_queue_sender("peek-states") as sender:
        tomorrow = datetime.now(timezone.utc) + timedelta(days=1)
        [scheduled] = sender.schedule_messages(ServiceBusMessage("scheduled"), tomorrow)
        with client.get_queue_receiver("peek-states") as receiver:
            [first] = receive(receiver)
            receiver.defer_message(first)
            # Without a number this SDK goes on after the last message it has received.
            peeked = receiver.peek_messages(max_message_count=10, sequence_number=1)
            states = {str(message): message.state for message in peeked}
            assert states == {
                "deferred": ServiceBusMessageState.DEFERRED,
                "active": ServiceBusMessageState.ACTIVE,
                "scheduled": ServiceBusMessageState.SCHEDULED,
            }
        sender.cancel_scheduled_messages(scheduled)


def test_peeking_an_empty_queue_gives_nothing(client):
    with client.get_queue_receiver("peek-empty") as receiver:
        assert receiver.peek_messages(max_message_count=10) == []
