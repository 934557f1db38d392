"""G: requests and replies on `$management`, as raw messages."""

import uuid
from datetime import datetime, timezone

import pytest
from proton import Array, Data, Message, UNDESCRIBED, int32, symbol, timestamp, uint
from proton.reactor import AtLeastOnce

from bus import Inbox, tag_of


class Management:
    """A request link and a reply link to one entity's management node."""

    def __init__(self, connection, entity):
        self._connection = connection
        self._inbox = Inbox()
        self._reply_to = f"reply-{uuid.uuid4()}"
        node = f"{entity}/$management"
        self._sender = connection.create_sender(node)
        self._receiver = connection.create_receiver(
            node, credit=10, handler=self._inbox, options=[AtLeastOnce()], name=self._reply_to
        )

    def call(self, operation, body):
        request = Message(
            id=uuid.uuid4(), reply_to=self._reply_to, body=body, properties={"operation": f"com.microsoft:{operation}"}
        )
        self._sender.send(request)
        self._connection.wait(lambda: self._inbox.arrived, msg=f"waiting for the reply to {operation}")
        reply, delivery = self._inbox.arrived.popleft()
        if not delivery.settled:
            delivery.settle()
        assert reply.correlation_id == request.id
        assert type(reply.properties["statusCode"]) is int32
        return reply


def lock_token(delivery):
    return uuid.UUID(bytes_le=tag_of(delivery))


def uuids(*tokens):
    return Array(UNDESCRIBED, Data.UUID, *tokens)


@pytest.fixture
def management(bus):
    return lambda entity: Management(bus.connection, entity)


def test_a_delivery_tag_is_a_lock_token_for_management(bus, management):
    bus.send("settle-elsewhere", "x")
    receiver = bus.receiver("settle-elsewhere")
    [(_, delivery)] = receiver.take()
    node = management("settle-elsewhere")

    renewed = node.call("renew-lock", {"lock-tokens": uuids(lock_token(delivery))})
    assert renewed.properties["statusCode"] == 200
    expirations = renewed.body["expirations"]
    assert expirations.type == Data.TIMESTAMP and len(expirations.elements) == 1

    settle = {"lock-tokens": uuids(lock_token(delivery)), "disposition-status": "completed"}
    assert node.call("update-disposition", settle).properties["statusCode"] == 200
    again = node.call("update-disposition", settle)
    assert again.properties["statusCode"] == 410
    assert again.properties["errorCondition"] == symbol("com.microsoft:message-lock-lost")


def test_peeking_returns_encoded_messages_and_204_at_the_end(bus, management):
    bus.send("peek", "a", "b")
    node = management("peek")
    page = node.call("peek-message", {"from-sequence-number": 1, "message-count": int32(10)})
    assert page.properties["statusCode"] == 200
    decoded = []
    for entry in page.body["messages"]:
        message = Message()
        message.decode(bytes(entry["message"]))
        decoded.append(message)
    assert [message.body for message in decoded] == ["a", "b"]
    beyond = decoded[-1].annotations[symbol("x-opt-sequence-number")] + 1
    end = node.call("peek-message", {"from-sequence-number": beyond, "message-count": int32(10)})
    assert end.properties["statusCode"] == 204
    assert bus.take("peek", 2) == ["a", "b"]


def test_old_messages_are_deleted_in_one_call(bus, management):
    bus.send("batch-delete", *range(5))
    node = management("batch-delete")
    now = timestamp(int(datetime.now(timezone.utc).timestamp() * 1000) + 1000)
    reply = node.call("batch-delete-messages", {"message-count": int32(3), "enqueued-time-utc": now})
    assert (reply.properties["statusCode"], reply.body["message-count"]) == (200, 3)
    assert bus.take("batch-delete", 2) == [3, 4]


def test_an_unknown_operation_is_answered_and_the_link_lives_on(management):
    node = management("send-receive")
    assert node.call("no-such-operation", {}).properties["statusCode"] == 501
    assert node.call("peek-message", {"from-sequence-number": 1, "message-count": uint(1)}).properties["statusCode"] in [
        200, 204,
    ]
