"""N8: messages for later."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError


def in_seconds(seconds):
    return datetime.now(timezone.utc) + timedelta(seconds=seconds)


def test_a_scheduled_message_arrives_at_its_time_and_not_before(client, receive):
    due = in_seconds(3)
    with client.get_queue_sender("schedule") as sender, client.get_queue_receiver("schedule") as receiver:
        numbers = sender.schedule_messages([ServiceBusMessage("a"), ServiceBusMessage("b")], due)
        assert len(set(numbers)) == 2
        messages = receive(receiver, 2)
        arrived = datetime.now(timezone.utc)
        assert [str(message) for message in messages] == ["a", "b"]
        for message in messages:
            assert due - timedelta(seconds=0.1) <= message.enqueued_time_utc <= due + timedelta(seconds=1)
            receiver.complete_message(message)
        assert due <= arrived + timedelta(seconds=0.1)


def test_a_message_may_carry_its_own_schedule(client, send, receive):
    due = in_seconds(2)
    send("schedule-by-property", ServiceBusMessage("later", scheduled_enqueue_time_utc=due))
    with client.get_queue_receiver("schedule-by-property") as receiver:
        [message] = receive(receiver)
        assert message.enqueued_time_utc >= due - timedelta(seconds=0.1)
        receiver.complete_message(message)


def test_a_cancelled_message_never_arrives_and_cannot_be_cancelled_again(impatient, is_empty):
    with impatient.get_queue_sender("cancel") as sender, impatient.get_queue_receiver("cancel") as receiver:
        numbers = sender.schedule_messages([ServiceBusMessage("a"), ServiceBusMessage("b")], in_seconds(3600))
        sender.cancel_scheduled_messages(numbers)
        assert is_empty(receiver)
        with pytest.raises(ServiceBusError):
            sender.cancel_scheduled_messages(numbers)
