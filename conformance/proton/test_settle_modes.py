"""D1, D2 and E11: who settles, and when."""

from proton import Delivery, Message
from proton.reactor import AtMostOnce


def test_an_unsettled_send_is_answered_with_accepted(bus):
    sender = bus.connection.create_sender("send-receive")
    delivery = sender.send(Message(body="x"))
    assert delivery.remote_state == Delivery.ACCEPTED
    assert bus.take("send-receive", 1) == ["x"]


def test_a_settled_send_is_stored_without_an_answer(bus):
    sender = bus.connection.create_sender("send-receive", options=AtMostOnce())
    sender.send(Message(body="fire and forget"))
    assert bus.take("send-receive", 1) == ["fire and forget"]


def test_a_settled_delivery_is_gone(bus):
    bus.send("receive-and-delete", "x", "y")
    receiver = bus.receiver("receive-and-delete", AtMostOnce())
    taken = receiver.take(2)
    assert [message.body for message, _ in taken] == ["x", "y"]
    assert all(delivery.settled for _, delivery in taken)
    receiver.close()
    assert bus.receiver("receive-and-delete").drain(10) == []
