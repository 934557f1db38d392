"""D8 to D10, E2: what goes in comes out, with the broker's annotations and nobody else's."""

import uuid
from datetime import datetime, timedelta, timezone

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType, AmqpMessageProperties


@pytest.fixture
def round_trip(client, send, receive):
    def round_trip(message):
        send("fidelity", message)
        with client.get_queue_receiver("fidelity") as receiver:
            [received] = receive(receiver)
            receiver.complete_message(received)
        return received

    return round_trip


def test_application_properties_keep_value_and_type(round_trip):
    when = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    sent = {
        "text": "grüße",
        "int": 42,
        "negative": -7,
        "float": 2.5,
        "true": True,
        "uuid": uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"),
        "when": when,
        "bytes": b"\x00\x01",
        "nothing": None,
    }
    received = round_trip(ServiceBusMessage("x", application_properties=dict(sent))).application_properties
    as_text = lambda value: value.decode() if isinstance(value, bytes) and value != b"\x00\x01" else value
    got = {key.decode(): as_text(value) for key, value in received.items()}
    got["when"] = datetime.fromtimestamp(got["when"] / 1000, timezone.utc)
    assert got == sent


def test_every_standard_property_survives(round_trip):
    received = round_trip(
        ServiceBusMessage(
            "x",
            message_id="id",
            correlation_id="correlation",
            subject="subject",
            content_type="application/json",
            to="to",
            reply_to="reply-to",
            reply_to_session_id="reply-to-session",
            session_id="session",
            partition_key="session",
        )
    )
    assert received.message_id == "id"
    assert received.correlation_id == "correlation"
    assert received.subject == "subject"
    assert received.content_type == "application/json"
    assert received.to == "to"
    assert received.reply_to == "reply-to"
    assert received.reply_to_session_id == "reply-to-session"
    assert received.session_id == "session"
    assert received.partition_key == "session"


@pytest.mark.parametrize(
    "body_type, body",
    [
        (AmqpMessageBodyType.VALUE, {b"key": [1, b"two", None]}),
        (AmqpMessageBodyType.SEQUENCE, [[1, 2], [b"three"]]),
        (AmqpMessageBodyType.DATA, [b"first", b"second"]),
    ],
)
def test_every_kind_of_body_survives(round_trip, body_type, body):
    kind = {
        AmqpMessageBodyType.VALUE: "value_body",
        AmqpMessageBodyType.SEQUENCE: "sequence_body",
        AmqpMessageBodyType.DATA: "data_body",
    }[body_type]
    received = round_trip(AmqpAnnotatedMessage(**{kind: body})).raw_amqp_message
    assert received.body_type == body_type
    assert (received.body if body_type == AmqpMessageBodyType.VALUE else list(received.body)) == body


@pytest.mark.parametrize("message_id", ["text", uuid.UUID(int=5), 7, b"\x01\x02"])
def test_message_ids_keep_their_type(round_trip, message_id):
    message = AmqpAnnotatedMessage(data_body=b"x", properties=AmqpMessageProperties(message_id=message_id))
    received = round_trip(message).raw_amqp_message.properties.message_id
    assert received in (message_id, message_id.encode() if isinstance(message_id, str) else message_id)


def test_the_broker_writes_its_own_annotations(client, send, receive):
    forged = AmqpAnnotatedMessage(
        data_body=b"x", annotations={"x-opt-sequence-number": 999_999, "x-opt-enqueued-time": 0, "x-opt-mine": "kept"}
    )
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    send("annotations", forged)
    with client.get_queue_receiver("annotations") as receiver:
        [message] = receive(receiver)
        lock = message.locked_until_utc - message.enqueued_time_utc
        receiver.complete_message(message)
    assert 0 < message.sequence_number < 999_999
    assert before <= message.enqueued_time_utc <= datetime.now(timezone.utc) + timedelta(seconds=1)
    assert timedelta(seconds=55) < lock < timedelta(seconds=65)
    assert message.raw_amqp_message.annotations[b"x-opt-mine"] == b"kept"
