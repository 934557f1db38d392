"""N9 and N10: sessions, one holder at a time."""

import time
from datetime import datetime, timezone

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage
from azure.servicebus.exceptions import (
    OperationTimeoutError,
    ServiceBusError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)


def test_a_session_accepted_by_id_gives_only_its_own_messages_in_order(client, send, receive):
    send(
        "session-by-id",
        ServiceBusMessage("a1", session_id="a"),
        ServiceBusMessage("b1", session_id="b"),
        ServiceBusMessage("a2", session_id="a"),
        ServiceBusMessage("b2", session_id="b"),
    )
    for session in ["b", "a"]:
        with client.get_queue_receiver("session-by-id", session_id=session) as receiver:
            assert receiver.session.session_id == session
            messages = receive(receiver, 2)
            assert [str(message) for message in messages] == [f"{session}1", f"{session}2"]
            for message in messages:
                receiver.complete_message(message)


def test_the_next_session_is_one_that_waits(client, send, receive):
    send("session-next", ServiceBusMessage("only", session_id="waiting"))
    with client.get_queue_receiver("session-next", session_id=NEXT_AVAILABLE_SESSION) as receiver:
        assert receiver.session.session_id == "waiting"
        [message] = receive(receiver)
        receiver.complete_message(message)


def test_waiting_for_a_session_ends_with_a_timeout(impatient):
    started = time.monotonic()
    with pytest.raises(OperationTimeoutError):
        with impatient.get_queue_receiver("session-none", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=3):
            pass
    assert time.monotonic() - started < 10


def test_a_held_session_cannot_be_taken_and_is_free_after_close(client, impatient):
    with client.get_queue_receiver("session-state", session_id="held"):
        with pytest.raises(SessionCannotBeLockedError):
            with impatient.get_queue_receiver("session-state", session_id="held"):
                pass
    with impatient.get_queue_receiver("session-state", session_id="held") as receiver:
        assert receiver.session.session_id == "held"


def test_session_state_outlives_its_holder(client):
    with client.get_queue_receiver("session-state", session_id="remembering") as receiver:
        assert receiver.session.get_state() is None
        receiver.session.set_state(b"step 3")
        assert receiver.session.get_state() == b"step 3"
    with client.get_queue_receiver("session-state", session_id="remembering") as receiver:
        assert receiver.session.get_state() == b"step 3"
        receiver.session.set_state(None)
        assert receiver.session.get_state() is None


def test_a_renewed_session_lock_outlives_its_first_expiry(client, impatient, send, receive):
    send("session-renewal", ServiceBusMessage("work", session_id="s"))
    with client.get_queue_receiver("session-renewal", session_id="s") as receiver:
        first_expiry = receiver.session.locked_until_utc
        [message] = receive(receiver)
        assert receiver.receive_messages(max_wait_time=2) == []
        assert receiver.session.renew_lock() > first_expiry
        left = (first_expiry - datetime.now(timezone.utc)).total_seconds()
        assert receiver.receive_messages(max_wait_time=left + 1) == []
        receiver.complete_message(message)


def test_a_session_lock_run_out_is_reported_and_the_session_free(client, impatient, send, receive):
    send("session-lock", ServiceBusMessage("work", session_id="s"))
    with client.get_queue_receiver("session-lock", session_id="s") as slow:
        [message] = receive(slow)
        with impatient.get_queue_receiver(
            "session-lock", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=20
        ) as next_holder:
            assert next_holder.session.session_id == "s"
            with pytest.raises(SessionLockLostError):
                slow.complete_message(message)
            [redelivered] = receive(next_holder)
            assert redelivered.delivery_count == 1
            next_holder.complete_message(redelivered)


def test_plain_and_session_receivers_do_not_mix(impatient):
    with pytest.raises(ServiceBusError):
        with impatient.get_queue_receiver("session-required") as receiver:
            receiver.receive_messages(max_wait_time=5)
    with pytest.raises(ServiceBusError):
        with impatient.get_queue_receiver("send-receive", session_id="s"):
            pass


def test_a_session_queue_refuses_messages_without_a_session(impatient):
    with impatient.get_queue_sender("session-required") as sender, pytest.raises(ServiceBusError):
        sender.send_messages(ServiceBusMessage("homeless"))


def test_sessions_with_messages_or_state_are_listed(client, send):
    send("session-list", *[ServiceBusMessage("x", session_id=f"s-{number:03}") for number in range(120)])
    listed = sorted(client.list_queue_sessions("session-list"))
    assert listed == [f"s-{number:03}" for number in range(120)]
