"""N7 and N8: looking without taking, and messages for later."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError


async def test_peeking_starts_anywhere_and_changes_nothing(client, send, receive):
    await send("peek", *[ServiceBusMessage(str(number)) for number in range(20)])
    async with client.get_queue_receiver("peek") as receiver:
        first = await receiver.peek_messages(max_message_count=10)
        assert [str(message) for message in first] == [str(number) for number in range(10)]
        start = first[-1].sequence_number + 1
        rest = await receiver.peek_messages(max_message_count=100, sequence_number=start)
        assert [str(message) for message in rest] == [str(number) for number in range(10, 20)]
        for message in await receive(receiver, 20):
            assert message.delivery_count == 0
            await receiver.complete_message(message)


async def test_a_scheduled_message_arrives_at_its_time(client, receive):
    due = datetime.now(timezone.utc) + timedelta(seconds=2)
    async with client.get_queue_sender("schedule") as sender, client.get_queue_receiver("schedule") as receiver:
        await sender.schedule_messages(ServiceBusMessage("later"), due)
        [message] = await receive(receiver)
        assert message.enqueued_time_utc >= due - timedelta(seconds=0.1)
        await receiver.complete_message(message)


async def test_a_cancelled_message_never_arrives_and_cannot_be_cancelled_again(impatient, is_empty):
    tomorrow = datetime.now(timezone.utc) + timedelta(days=1)
    async with impatient.get_queue_sender("cancel") as sender, impatient.get_queue_receiver("cancel") as receiver:
        [number] = await sender.schedule_messages(ServiceBusMessage("never"), tomorrow)
        await sender.cancel_scheduled_messages(number)
        assert await is_empty(receiver)
        with pytest.raises(ServiceBusError):
            await sender.cancel_scheduled_messages(number)
