"""N13: one process, ten handlers at a time."""

import asyncio

from azure.servicebus import ServiceBusMessage

MESSAGES = 1000
WORKERS = 10


async def test_a_thousand_messages_are_handled_by_ten_tasks(client, is_empty):
    async with client.get_queue_sender("streaming") as sender:
        batch = await sender.create_message_batch()
        for number in range(MESSAGES):
            batch.add_message(ServiceBusMessage(str(number)))
        await sender.send_messages(batch)

    handled = []

    async def work():
        """Takes messages one by one until none has come for two seconds."""
        async with client.get_queue_receiver("streaming", max_wait_time=2, prefetch_count=20) as receiver:
            async for message in receiver:
                await receiver.complete_message(message)
                handled.append(int(str(message)))

    await asyncio.gather(*[work() for _ in range(WORKERS)])
    assert sorted(handled) == list(range(MESSAGES))
    async with client.get_queue_receiver("streaming") as receiver:
        assert await is_empty(receiver)
