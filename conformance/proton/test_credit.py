"""E5 to E10: the receiver says how many, and the broker keeps to it."""


def test_credit_of_five_brings_exactly_five(bus):
    bus.send("credit", *[str(number) for number in range(10)])
    receiver = bus.receiver("credit")
    first = receiver.take(5)
    assert receiver.link.credit == 0
    # An answered drain proves that nothing else was on its way: it would have come before the answer.
    assert receiver.drain(0) == []
    rest = receiver.take(5)
    assert [message.body for message, _ in first + rest] == [str(number) for number in range(10)]
    for _, delivery in first + rest:
        receiver.accept(delivery)


def test_draining_an_empty_queue_ends_at_once(bus):
    receiver = bus.receiver("credit")
    assert receiver.drain(10) == []
    assert receiver.link.credit == 0


def test_draining_brings_what_there_is_and_then_ends(bus):
    receiver = bus.receiver("credit")
    bus.send("credit", "a", "b", "c")
    drained = receiver.drain(10)
    assert [message.body for message, _ in drained] == ["a", "b", "c"]
    assert receiver.link.credit == 0
    for _, delivery in drained:
        receiver.accept(delivery)


def test_after_a_drain_nothing_comes_without_new_credit(bus):
    receiver = bus.receiver("credit")
    assert receiver.drain(10) == []
    bus.send("credit", "late")
    assert receiver.drain(0) == []
    [(message, delivery)] = receiver.take()
    receiver.accept(delivery)
    assert message.body == "late"
