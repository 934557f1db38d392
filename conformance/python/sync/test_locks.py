"""N5 and N6: a lock renewed holds, a lock run out does not."""

from datetime import datetime, timezone

import pytest
from azure.servicebus import AutoLockRenewer, ServiceBusMessage
from azure.servicebus.exceptions import MessageLockLostError


def seconds_until(instant):
    return (instant - datetime.now(timezone.utc)).total_seconds()


def test_a_renewed_lock_outlives_its_first_expiry(client, send, receive, is_empty):
    send("lock-renewal", ServiceBusMessage("slow work"))
    with client.get_queue_receiver("lock-renewal") as receiver, client.get_queue_receiver("lock-renewal") as rival:
        [message] = receive(receiver)
        first_expiry = message.locked_until_utc
        # The rival waits past half of the first lock, then past its end, and must never see the message.
        assert rival.receive_messages(max_wait_time=seconds_until(first_expiry) / 2) == []
        renewed_until = receiver.renew_message_lock(message)
        assert renewed_until > first_expiry
        assert rival.receive_messages(max_wait_time=seconds_until(first_expiry) + 0.5) == []
        receiver.complete_message(message)
        assert is_empty(receiver)


def test_completing_after_the_lock_ran_out_is_refused(client, send, receive):
    send("lock-lost", ServiceBusMessage("too slow"))
    with client.get_queue_receiver("lock-lost") as slow, client.get_queue_receiver("lock-lost") as next_one:
        [message] = receive(slow)
        [redelivered] = receive(next_one)
        assert redelivered.sequence_number == message.sequence_number
        assert redelivered.delivery_count == 1
        with pytest.raises(MessageLockLostError):
            slow.complete_message(message)
        next_one.complete_message(redelivered)


def test_renewing_a_lock_that_ran_out_is_refused(client, send, receive):
    send("lock-lost", ServiceBusMessage("too slow"))
    with client.get_queue_receiver("lock-lost") as slow, client.get_queue_receiver("lock-lost") as next_one:
        [message] = receive(slow)
        [redelivered] = receive(next_one)
        with pytest.raises(MessageLockLostError):
            slow.renew_message_lock(message)
        next_one.complete_message(redelivered)


def test_the_automatic_renewer_keeps_a_message_while_it_is_worked_on(client, send, receive, is_empty):
    send("lock-renewal", ServiceBusMessage("long work"))
    with client.get_queue_receiver("lock-renewal") as receiver, client.get_queue_receiver("lock-renewal") as rival:
        with AutoLockRenewer(max_lock_renewal_duration=30) as renewer:
            [message] = receive(receiver)
            renewer.register(receiver, message)
            assert rival.receive_messages(max_wait_time=8) == []
            receiver.complete_message(message)
        assert is_empty(receiver)
