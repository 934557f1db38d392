"""Beyond Service Bus: a link that takes only some of a queue's messages."""

import pytest
from proton import Described, Message, symbol, ubyte
from proton.reactor import Filter, Selector

MIN_LEVEL = symbol("vorrang:min-level")


@pytest.mark.parametrize("value", [ubyte(7), Described(MIN_LEVEL, ubyte(7))], ids=["plain", "described"])
def test_an_express_link_gets_only_high_levels(bus, value):
    express = bus.receiver("min-level", Filter({MIN_LEVEL: value}))
    bus.send("min-level", Message(body="low", priority=1), Message(body="six", priority=6))
    assert express.drain(10) == []
    bus.send("min-level", Message(body="seven", priority=7), Message(body="nine", priority=9))
    taken = express.drain(10)
    assert [message.body for message, _ in taken] == ["nine", "seven"]
    for _, delivery in taken:
        express.accept(delivery)
    express.close()
    assert bus.take("min-level", 2) == ["six", "low"]


def test_an_express_link_with_credit_is_served_when_a_high_message_comes(bus):
    express = bus.receiver("min-level", Filter({MIN_LEVEL: ubyte(7)}))
    express.link.flow(1)
    bus.send("min-level", Message(body="low", priority=1), Message(body="high", priority=7))
    [(message, delivery)] = express.take(1, credit=0)
    express.accept(delivery)
    express.close()
    assert message.body == "high"
    assert bus.take("min-level", 1) == ["low"]


def test_a_selector_chooses_by_property(bus):
    colors = ["red", "blue", "red", None]
    bus.send("selector", *[Message(body=n, properties={"color": c} if c else None) for n, c in enumerate(colors)])
    red = bus.receiver("selector", Selector("color = 'red'"))
    taken = red.drain(10)
    assert [message.body for message, _ in taken] == [0, 2]
    for _, delivery in taken:
        red.accept(delivery)
    red.close()
    assert bus.take("selector", 2) == [1, 3]
