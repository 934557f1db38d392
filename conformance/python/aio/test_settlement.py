"""N4: every outcome a receiver can choose."""

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.exceptions import MessageNotFoundError


async def test_an_abandoned_message_comes_back_first_and_counts_the_attempt(client, send, receive):
    await send("abandon", ServiceBusMessage("first"), ServiceBusMessage("second"))
    async with client.get_queue_receiver("abandon") as receiver:
        [message] = await receive(receiver)
        await receiver.abandon_message(message)
        again, second = await receive(receiver, 2)
        assert [(str(again), again.delivery_count), (str(second), second.delivery_count)] == [("first", 1), ("second", 0)]
        await receiver.complete_message(again)
        await receiver.complete_message(second)


async def test_a_deferred_message_is_only_received_by_its_sequence_number(impatient, send, receive):
    await send("defer", ServiceBusMessage("later"))
    async with impatient.get_queue_receiver("defer") as receiver:
        [message] = await receive(receiver)
        await receiver.defer_message(message)
        assert await receiver.receive_messages(max_wait_time=1) == []
        [deferred] = await receiver.receive_deferred_messages(message.sequence_number)
        await receiver.complete_message(deferred)
        with pytest.raises(MessageNotFoundError):
            await receiver.receive_deferred_messages(message.sequence_number)


async def test_a_dead_lettered_message_keeps_its_reason(client, send, receive):
    await send("dead-letter", ServiceBusMessage("broken"))
    async with client.get_queue_receiver("dead-letter") as receiver:
        [message] = await receive(receiver)
        await receiver.dead_letter_message(message, reason="bad form", error_description="no total")
    async with client.get_queue_receiver("dead-letter", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        [dead] = await receive(receiver)
        assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("bad form", "no total")
        await receiver.complete_message(dead)
