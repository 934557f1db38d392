"""Beyond Service Bus: one receiver over several queues that always serves the first non-empty one."""

from proton import Message

from ordered import ordered

QUEUES = ["strict-high", "strict-normal", "strict-low"]


def test_the_first_queue_is_served_before_the_second(bus):
    for queue in reversed(QUEUES):
        bus.send(queue, f"{queue} 1", f"{queue} 2")
    expected = [f"{queue} {number}" for queue in QUEUES for number in [1, 2]]
    assert bus.take(ordered(QUEUES), len(expected)) == expected


def test_one_wait_covers_all_queues(bus):
    receiver = bus.receiver(ordered(QUEUES))
    receiver.link.flow(1)
    bus.send("strict-low", "low")
    [(message, delivery)] = receiver.take(1, credit=0)
    receiver.accept(delivery)
    assert message.body == "low"


def test_a_message_for_a_higher_queue_overtakes(bus):
    bus.send("strict-low", "low 1", "low 2")
    receiver = bus.receiver(ordered(QUEUES))
    bodies = []
    for arriving in [None, "strict-high", None]:
        if arriving:
            bus.send(arriving, Message(body="high"))
        [(message, delivery)] = receiver.take()
        receiver.accept(delivery)
        bodies.append(message.body)
    assert bodies == ["low 1", "high", "low 2"]
