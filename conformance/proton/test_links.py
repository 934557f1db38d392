"""C: how a link finds its entity, and what it is told when it cannot."""

import pytest
from proton import Message
from proton.utils import LinkDetached


@pytest.mark.parametrize("address", ["send-receive", "/send-receive", "amqps://any.host/send-receive", "SEND-receive"])
def test_every_spelling_of_an_address_reaches_the_queue(bus, address):
    bus.send(address, "hello")
    assert bus.take("send-receive", 1) == ["hello"]


@pytest.mark.parametrize("address", ["fan-out/Subscriptions/first", "fan-out/subscriptions/first"])
def test_subscriptions_are_found_in_either_spelling(bus, address):
    bus.send("fan-out", "news")
    assert bus.take(address, 1) == ["news"]
    assert bus.take("fan-out/Subscriptions/second", 1) == ["news"]


@pytest.mark.parametrize("make_link", ["create_sender", "create_receiver"])
def test_a_missing_entity_is_named(bus, make_link):
    with pytest.raises(LinkDetached) as refused:
        getattr(bus.connection, make_link)("no-such-queue")
    assert refused.value.condition == "amqp:not-found"
    assert "The messaging entity" in str(refused.value) and "could not be found" in str(refused.value)


@pytest.mark.parametrize("address", ["fan-out", "forward-start", "session-required"])
def test_a_receiver_of_the_wrong_kind_is_refused(bus, address):
    with pytest.raises(LinkDetached) as refused:
        bus.connection.create_receiver(address)
    assert refused.value.condition == "amqp:not-allowed"


def test_a_sender_and_a_receiver_may_share_a_name(bus):
    sender = bus.connection.create_sender("send-receive", name="twin")
    receiver = bus.receiver("send-receive", name="twin")
    sender.send(Message(body="hello"))
    [(message, delivery)] = receiver.take()
    receiver.accept(delivery)
    assert message.body == "hello"


def test_a_sender_gets_credit_and_a_size_limit_unasked(bus):
    sender = bus.connection.create_sender("send-receive")
    bus.connection.wait(lambda: sender.link.credit > 0, msg="waiting for credit")
    assert sender.link.remote_max_message_size > 0
