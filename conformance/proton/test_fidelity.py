"""D8 and A8: every type of AMQP comes out as it went in, also through small frames."""

import uuid

import pytest
from proton import (
    Described, Message, byte, char, decimal32, decimal64, decimal128, float32, int32, short, symbol, timestamp, ubyte,
    uint, ulong, ushort,
)

from bus import Bus

EVERY_TYPE = {
    "null": None,
    "boolean": True,
    "ubyte": ubyte(255),
    "byte": byte(-128),
    "ushort": ushort(65535),
    "short": short(-32768),
    "uint": uint(2**32 - 1),
    "int": int32(-(2**31)),
    "ulong": ulong(2**64 - 1),
    "long": -(2**63),
    "float": float32(1.5),
    "double": 2.25,
    "decimal32": decimal32(12345),
    "decimal64": decimal64(12345),
    "decimal128": decimal128(bytes(range(16))),
    "char": char("ß"),
    "timestamp": timestamp(1_700_000_000_000),
    "uuid": uuid.UUID(int=7),
    "binary": b"\x00\xff",
    "string": "grüße",
    "symbol": symbol("sym"),
    "described": Described(symbol("com.microsoft:timespan"), 5),
}


def round_trip(bus, message):
    bus.send("fidelity", message)
    receiver = bus.receiver("fidelity")
    [(received, delivery)] = receiver.take()
    receiver.accept(delivery)
    receiver.close()
    return received


def exactly(value):
    """Value and type: Proton's wrappers compare equal to plain numbers. Binaries are lent as views."""
    if isinstance(value, memoryview):
        value = bytes(value)
    return type(value), value


@pytest.mark.parametrize("name", EVERY_TYPE)
def test_every_type_survives_as_property_and_in_the_body(bus, name):
    value = EVERY_TYPE[name]
    received = round_trip(bus, Message(body={"nested": [value, {"again": value}]}, properties={"p": value}))
    assert exactly(received.properties["p"]) == exactly(value)
    assert exactly(received.body["nested"][0]) == exactly(value)
    assert exactly(received.body["nested"][1]["again"]) == exactly(value)


def test_standard_properties_survive(bus):
    sent = dict(
        id="id", correlation_id=uuid.UUID(int=9), subject="subject", reply_to="reply", content_type="text/plain",
        content_encoding="utf-8", group_id="group", group_sequence=3, reply_to_group_id="reply-group", user_id=b"user",
        durable=True, priority=7,
    )
    received = round_trip(bus, Message(body="x", **sent))
    assert {name: getattr(received, name) for name in sent} == sent


@pytest.mark.parametrize("message_id", ["text", ulong(5), uuid.UUID(int=5), b"\x01\x02"])
def test_message_ids_keep_their_type(bus, message_id):
    received = round_trip(bus, Message(body="x", id=message_id))
    # Proton hands a ulong out as a plain number, which no other kind of id is.
    expected = int(message_id) if isinstance(message_id, ulong) else message_id
    assert exactly(received.id) == exactly(expected)


def test_a_message_without_id_gets_one(bus):
    received = round_trip(bus, Message(body="x"))
    assert isinstance(received.id, str) and received.id


@pytest.mark.parametrize("body_bytes", [0, 1, 4096, 100_000, 200_000])
def test_large_messages_pass_through_small_frames(body_bytes):
    body = bytes(number % 251 for number in range(body_bytes))
    with Bus(max_frame_size=4096) as bus:
        bus.send("sizes", Message(body=body, inferred=True))
        assert bus.take("sizes", 1) == [body]
