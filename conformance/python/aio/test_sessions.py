"""N9 and N10: sessions, one holder at a time."""

import asyncio
import time

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage
from azure.servicebus.exceptions import OperationTimeoutError, SessionCannotBeLockedError


async def test_sessions_keep_their_messages_apart_and_in_order(client, send, receive):
    await send(
        "session-by-id",
        *[ServiceBusMessage(f"{session}{number}", session_id=session) for number in range(3) for session in "ab"],
    )
    for session in "ba":
        async with client.get_queue_receiver("session-by-id", session_id=session) as receiver:
            messages = await receive(receiver, 3)
            assert [str(message) for message in messages] == [f"{session}{number}" for number in range(3)]
            for message in messages:
                await receiver.complete_message(message)


async def test_a_waiting_accept_gets_the_session_that_arrives(client, send, receive):
    async def accept():
        async with client.get_queue_receiver("session-next", session_id=NEXT_AVAILABLE_SESSION) as receiver:
            [message] = await receive(receiver)
            await receiver.complete_message(message)
            return receiver.session.session_id

    waiting = asyncio.create_task(accept())
    await send("session-next", ServiceBusMessage("first", session_id="new"))
    assert await waiting == "new"


async def test_waiting_for_a_session_ends_with_a_timeout(impatient):
    started = time.monotonic()
    with pytest.raises(OperationTimeoutError):
        async with impatient.get_queue_receiver("session-none", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=3):
            pass
    assert time.monotonic() - started < 10


async def test_a_held_session_cannot_be_taken_and_keeps_its_state(client, impatient):
    async with client.get_queue_receiver("session-state", session_id="held") as holder:
        await holder.session.set_state(b"step 3")
        with pytest.raises(SessionCannotBeLockedError):
            async with impatient.get_queue_receiver("session-state", session_id="held"):
                pass
    async with client.get_queue_receiver("session-state", session_id="held") as holder:
        assert await holder.session.get_state() == b"step 3"
        assert await holder.session.renew_lock() is not None
