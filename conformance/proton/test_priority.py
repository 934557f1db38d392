"""Beyond Service Bus: the level of a message decides who is first, and it is kept for life."""

from proton import Delivery, Message, ubyte

HIGH, DEFAULT, LOW = 7, 4, 1


def test_the_header_orders_deliveries(bus):
    levels = [LOW, DEFAULT, HIGH, 9, 0, HIGH]
    bus.send("priority-header", *[Message(body=f"{level} {n}", priority=level) for n, level in enumerate(levels)])
    assert bus.take("priority-header", len(levels)) == ["9 3", "7 2", "7 5", "4 1", "1 0", "0 4"]


def test_the_property_wins_over_the_header(bus):
    bus.send(
        "priority-property",
        Message(body="header high, property low", priority=HIGH, properties={"Priority": "low"}),
        Message(body="plain"),
        Message(body="as a number", properties={"Priority": ubyte(8)}),
        Message(body="as a class", properties={"Priority": "urgent"}),
    )
    expected = ["as a class", "as a number", "plain", "header high, property low"]
    assert bus.take("priority-property", 4) == expected


def test_the_level_is_kept_through_every_way_back(bus):
    bus.send("priority-kept", Message(body="high", priority=HIGH), Message(body="low", priority=LOW))
    receiver = bus.receiver("priority-kept")
    for outcome in [Delivery.MODIFIED, Delivery.RELEASED, Delivery.MODIFIED]:
        [(message, delivery)] = receiver.take()
        assert (message.body, message.priority) == ("high", HIGH)
        receiver.settle(delivery, outcome)
    receiver.close()
    assert bus.take("priority-kept", 2) == ["high", "low"]


def test_a_higher_message_overtakes_those_already_waiting(bus):
    receiver = bus.receiver("priority-header")
    bus.send("priority-header", *[Message(body=f"low {n}", priority=LOW) for n in range(3)])
    [(first, delivery)] = receiver.take()
    receiver.accept(delivery)
    bus.send("priority-header", Message(body="high", priority=HIGH))
    rest = []
    for _ in range(3):
        [(message, delivery)] = receiver.take()
        receiver.accept(delivery)
        rest.append(message.body)
    assert (first.body, rest) == ("low 0", ["high", "low 1", "low 2"])
