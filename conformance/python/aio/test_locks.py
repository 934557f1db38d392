"""N5 and N6: a lock renewed holds, a lock run out does not."""

from datetime import datetime, timezone

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageLockLostError


async def test_a_renewed_lock_outlives_its_first_expiry(client, send, receive, is_empty):
    await send("lock-renewal", ServiceBusMessage("slow work"))
    async with client.get_queue_receiver("lock-renewal") as receiver, client.get_queue_receiver("lock-renewal") as rival:
        [message] = await receive(receiver)
        first_expiry = message.locked_until_utc
        assert await rival.receive_messages(max_wait_time=2) == []
        assert await receiver.renew_message_lock(message) > first_expiry
        left = (first_expiry - datetime.now(timezone.utc)).total_seconds()
        assert await rival.receive_messages(max_wait_time=left + 0.5) == []
        await receiver.complete_message(message)
        assert await is_empty(receiver)


async def test_completing_after_the_lock_ran_out_is_refused(client, send, receive):
    await send("lock-lost", ServiceBusMessage("too slow"))
    async with client.get_queue_receiver("lock-lost") as slow, client.get_queue_receiver("lock-lost") as next_one:
        [message] = await receive(slow)
        [redelivered] = await receive(next_one)
        assert redelivered.delivery_count == 1
        with pytest.raises(MessageLockLostError):
            await slow.complete_message(message)
        await next_one.complete_message(redelivered)
