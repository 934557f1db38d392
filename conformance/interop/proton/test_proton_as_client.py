"""Qpid Proton as client, our engine as server."""

import pytest
from bus import Bus
from proton import ConnectionException, Delivery, Described, Message, symbol, ubyte, ulong
from proton.reactor import AtMostOnce, Filter, Selector
from proton.utils import ConnectionClosed, LinkDetached, SendException

from peer import PASSWORD, USER, filter_of


def test_anonymous_and_plain_both_open(port):
    for login in [dict(user=None, password=None, mechanism="ANONYMOUS"), dict(user=USER, password=PASSWORD)]:
        with Bus(port=port, **login) as bus:
            assert bus.connection.conn.remote_container == "interop-peer"


def test_a_wrong_password_does_not(port):
    with pytest.raises(ConnectionException):
        Bus(port=port, user=USER, password="guess")


@pytest.mark.parametrize("body_bytes", [0, 1, 3000, 4096, 100_000, 900_000])
def test_messages_of_every_size_come_back(bus, body_bytes):
    body = bytes(number % 251 for number in range(body_bytes))
    bus.send("echo", Message(body=body, inferred=True))
    assert bus.take("echo", 1) == [body]


def test_many_messages_come_back_in_order(bus):
    bus.send("echo", *range(500))
    assert bus.take("echo", 500) == list(range(500))


@pytest.mark.parametrize("address", ["rejecting", "releasing"])
def test_a_sender_hears_of_failure(bus, address):
    with pytest.raises(SendException) as failed:
        bus.send(address, "x")
    assert failed.value.state == {"rejecting": Delivery.REJECTED, "releasing": Delivery.RELEASED}[address]


def test_a_sender_hears_of_modification(bus):
    delivery = bus.connection.create_sender("modifying").send(Message(body="x"))
    assert delivery.remote_state == Delivery.MODIFIED
    assert delivery.remote.failed


@pytest.mark.parametrize("outcome", [Delivery.RELEASED, Delivery.MODIFIED])
def test_what_a_receiver_gives_back_comes_again(bus, outcome):
    bus.send("echo", "x")
    receiver = bus.receiver("echo")
    [(_, delivery)] = receiver.take()
    assert receiver.settle(delivery, outcome) == (outcome, None)
    [(message, delivery)] = receiver.take()
    receiver.accept(delivery)
    assert message.body == "x"


def test_what_a_receiver_rejects_is_gone(bus):
    bus.send("echo", "x")
    receiver = bus.receiver("echo")
    [(_, delivery)] = receiver.take()
    assert receiver.settle(delivery, Delivery.REJECTED) == (Delivery.REJECTED, None)
    assert receiver.drain(5) == []


def test_settled_messages_pass_without_a_word(bus):
    sender = bus.connection.create_sender("echo", options=AtMostOnce())
    sender.send(Message(body="x"))
    receiver = bus.receiver("echo", AtMostOnce())
    [(message, delivery)] = receiver.take()
    assert (message.body, delivery.settled) == ("x", True)


def test_credit_is_kept_and_drains_end(bus):
    bus.send("echo", *range(10))
    receiver = bus.receiver("echo")
    assert receiver.drain(0) == []
    first = receiver.take(4)
    assert receiver.drain(0) == []
    rest = receiver.drain(100)
    assert [message.body for message, _ in first + rest] == list(range(10))
    assert receiver.link.credit == 0
    for _, delivery in first + rest:
        receiver.accept(delivery)


FILTERS = {
    "described": Selector("color = 'red'"),
    "described by number": Filter({symbol("session"): Described(ulong(0x137000000C), "s-1")}),
    "plain": Filter({symbol("vorrang:min-level"): ubyte(7)}),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_are_echoed_as_they_came(bus, name):
    receiver = bus.receiver("echo", FILTERS[name])
    assert filter_of(receiver.link.remote_source) == FILTERS[name].filter_set


def test_a_refused_link_names_the_reason(bus):
    for make_link in [bus.connection.create_sender, bus.connection.create_receiver]:
        with pytest.raises(LinkDetached) as refused:
            make_link("refused")
        assert refused.value.condition == "amqp:not-found"
    bus.send("echo", "the connection lives on")
    assert bus.take("echo", 1) == ["the connection lives on"]


def test_a_link_detached_by_the_server_names_the_reason(bus):
    with pytest.raises(LinkDetached) as detached:
        bus.send("detaching", "x")
    assert detached.value.condition == "amqp:resource-limit-exceeded"


def test_a_connection_closed_by_the_server_names_the_reason(port):
    with Bus(port=port, user=USER, password=PASSWORD) as bus:
        with pytest.raises(ConnectionClosed) as closed:
            bus.send("closing", "x")
    assert closed.value.condition == "amqp:connection:forced"


def test_links_come_and_go_on_one_session(bus):
    for number in range(50):
        bus.send("echo", number)
        assert bus.take("echo", 1) == [number]
