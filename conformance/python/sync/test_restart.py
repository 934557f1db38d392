"""N14 and J7: the broker dies without warning; clients come back by themselves and nothing accepted is lost."""

import itertools
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.exceptions import ServiceBusError

from broker import Broker

MESSAGES = 300
KILLS = 5


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path) as broker:
        yield broker


@pytest.fixture
def client(broker):
    """Connected to the broker that dies. More retries than usual: a restart may take a few of them."""
    options = dict(retry_total=10, retry_backoff_factor=0.1)
    with ServiceBusClient.from_connection_string(broker.endpoint.connection_string(), **options) as client:
        yield client


def drain(receiver):
    """Completes what is delivered a second time, until nothing more comes within a lock's length."""
    while messages := receiver.receive_messages(max_message_count=50, max_wait_time=7):
        for message in messages:
            receiver.complete_message(message)


def test_a_stream_survives_a_crash_in_its_middle(broker, client, is_empty):
    with client.get_queue_sender("streaming-restart") as sender:
        sender.send_messages([ServiceBusMessage(str(number)) for number in range(MESSAGES)])

    seen = set()

    def handle_until(receiver, count):
        while len(seen) < count:
            for message in receiver.receive_messages(max_message_count=20, max_wait_time=10):
                seen.add(str(message))
                try:
                    receiver.complete_message(message)
                except ServiceBusError:
                    pass  # its lock fell with the broker; the message comes again

    with client.get_queue_receiver("streaming-restart") as receiver:
        handle_until(receiver, MESSAGES // 3)
        in_flight = receiver.receive_messages(max_message_count=20, max_wait_time=10)
        broker.restart()
        assert in_flight, "the crash should find messages at the client"
        handle_until(receiver, MESSAGES)
        drain(receiver)
        assert is_empty(receiver)
    assert seen == {str(number) for number in range(MESSAGES)}


def test_everything_accepted_is_there_after_a_crash(broker, client, send, receive):
    tomorrow = datetime.now(timezone.utc) + timedelta(days=1)
    send("durable", *[ServiceBusMessage(body) for body in ["dead", "deferred", "tried", "untouched"]])
    with client.get_queue_sender("durable") as sender:
        [scheduled] = sender.schedule_messages(ServiceBusMessage("scheduled"), tomorrow)
    with client.get_queue_receiver("durable") as receiver:
        dead, deferred, tried = receive(receiver, 3)
        receiver.dead_letter_message(dead, reason="before the crash")
        receiver.defer_message(deferred)
        receiver.abandon_message(tried)
    with client.get_queue_receiver("session-state", session_id="s") as receiver:
        receiver.session.set_state(b"kept")

    broker.restart()

    with client.get_queue_receiver("durable") as receiver:
        again, untouched = receive(receiver, 2)
        assert (str(again), str(untouched)) == ("tried", "untouched")
        assert (again.delivery_count, untouched.delivery_count) == (1, 0)
        [found] = receiver.receive_deferred_messages(deferred.sequence_number)
        for message in [again, untouched, found]:
            receiver.complete_message(message)
        assert [str(message) for message in receiver.peek_messages(max_message_count=10)] == ["scheduled"]
    with client.get_queue_receiver("durable", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        [found] = receive(receiver)
        assert found.dead_letter_reason == "before the crash"
        receiver.complete_message(found)
    with client.get_queue_receiver("session-state", session_id="s") as receiver:
        assert receiver.session.get_state() == b"kept"
    with client.get_queue_sender("durable") as sender:
        sender.cancel_scheduled_messages(scheduled)


def test_crash_after_crash_loses_nothing_accepted_and_repeats_nothing_completed(broker):
    """Two clients at work while the broker is killed again and again; each remembers what it was told."""
    accepted, completed, doubtful = set(), set(), set()
    numbers, repeated = set(), set()
    stop = threading.Event()

    def connect():
        options = dict(retry_total=10, retry_backoff_factor=0.1, retry_backoff_max=1)
        return ServiceBusClient.from_connection_string(broker.endpoint.connection_string(), **options)

    def produce():
        with connect() as client, client.get_queue_sender("streaming-restart") as sender:
            for number in itertools.count():
                if stop.is_set():
                    return
                try:
                    sender.send_messages(ServiceBusMessage(str(number)))
                    accepted.add(str(number))
                except ServiceBusError:
                    pass  # nothing was promised

    def handle(receiver, wait):
        messages = receiver.receive_messages(max_message_count=20, max_wait_time=wait)
        for message in messages:
            # By number: a send whose answer was lost is sent again by the SDK, and is then another message.
            repeated.update({message.sequence_number} & numbers)
            try:
                receiver.complete_message(message)
                numbers.add(message.sequence_number)
                completed.add(str(message))
            except ServiceBusError:
                doubtful.add(str(message))  # the answer was lost: it may or may not come again
        return messages

    def consume():
        with connect() as client, client.get_queue_receiver("streaming-restart") as receiver:
            while not stop.is_set():
                try:
                    handle(receiver, 1)
                except ServiceBusError:
                    pass  # the next call connects again

    clients = [threading.Thread(target=story) for story in [produce, consume]]
    for thread in clients:
        thread.start()
    for _ in range(KILLS):
        before = len(completed)
        while len(completed) < before + 30:  # killed at work, not while it starts
            assert all(thread.is_alive() for thread in clients)
            time.sleep(0.05)
        broker.restart()
    stop.set()
    for thread in clients:
        thread.join()
    with connect() as client, client.get_queue_receiver("streaming-restart") as receiver:
        while handle(receiver, 7):  # longer than a lock
            pass
    lost = accepted - completed - doubtful
    assert not lost, f"accepted and lost: {sorted(lost, key=int)} of {len(accepted)}, {len(doubtful)} in doubt"
    assert not repeated, "completed and delivered again"


def test_sequence_numbers_go_on_after_a_crash(broker, client, send, receive):
    send("durable", ServiceBusMessage("before"))
    with client.get_queue_receiver("durable") as receiver:
        [before] = receive(receiver)
        receiver.complete_message(before)
    broker.restart()
    send("durable", ServiceBusMessage("after"))
    with client.get_queue_receiver("durable") as receiver:
        [after] = receive(receiver)
        receiver.complete_message(after)
    assert after.sequence_number > before.sequence_number
