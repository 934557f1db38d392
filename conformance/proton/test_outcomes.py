"""F and E: what each outcome does to the message, and that the broker answers with the same one."""

import uuid

from proton import Condition, Delivery, symbol

from bus import tag_of


def test_a_delivery_is_tagged_with_its_lock_token(bus):
    bus.send("annotations", "x")
    receiver = bus.receiver("annotations")
    [(message, delivery)] = receiver.take()
    token = uuid.UUID(bytes_le=tag_of(delivery))
    receiver.accept(delivery)
    assert message.instructions[symbol("x-opt-lock-token")] == token
    for name in ["x-opt-enqueued-time", "x-opt-sequence-number", "x-opt-locked-until"]:
        assert symbol(name) in message.annotations, name


def test_modified_counts_the_attempt_and_the_message_comes_back_first(bus):
    bus.send("abandon", "first", "second")
    receiver = bus.receiver("abandon")
    [(message, delivery)] = receiver.take()
    assert message.delivery_count == 0
    assert receiver.settle(delivery, Delivery.MODIFIED) == (Delivery.MODIFIED, None)
    (again, delivery), (second, second_delivery) = receiver.take(2)
    assert [again.body, again.delivery_count] == ["first", 1]
    assert [second.body, second.delivery_count] == ["second", 0]
    receiver.accept(delivery)
    receiver.accept(second_delivery)


def test_released_does_not_count(bus):
    bus.send("release", "x")
    receiver = bus.receiver("release")
    for _ in range(15):
        [(message, delivery)] = receiver.take()
        assert message.delivery_count == 0
        assert receiver.settle(delivery, Delivery.RELEASED) == (Delivery.RELEASED, None)
    [(_, delivery)] = receiver.take()
    receiver.accept(delivery)


def test_undeliverable_here_defers(bus):
    bus.send("defer", "later")
    receiver = bus.receiver("defer")
    [(_, delivery)] = receiver.take()
    delivery.local.undeliverable = True
    assert receiver.settle(delivery, Delivery.MODIFIED) == (Delivery.MODIFIED, None)
    assert receiver.drain(10) == []


def test_rejected_dead_letters_with_the_reason_given(bus):
    bus.send("dead-letter", "broken")
    receiver = bus.receiver("dead-letter")
    [(_, delivery)] = receiver.take()
    reason = {symbol("DeadLetterReason"): "bad form", symbol("DeadLetterErrorDescription"): "no total"}
    delivery.local.condition = Condition("com.microsoft:dead-letter", "dead-lettered", reason)
    assert receiver.settle(delivery, Delivery.REJECTED) == (Delivery.REJECTED, None)

    dead_letters = bus.receiver("dead-letter/$DeadLetterQueue")
    [(dead, delivery)] = dead_letters.take()
    dead_letters.accept(delivery)
    assert dead.body == "broken"
    assert dead.properties["DeadLetterReason"] == "bad form"
    assert dead.properties["DeadLetterErrorDescription"] == "no total"
    assert dead.annotations[symbol("x-opt-deadletter-source")] == "dead-letter"


def test_settling_a_whole_run_at_once(bus):
    bus.send("order", *[str(number) for number in range(20)])
    receiver = bus.receiver("order")
    taken = receiver.take(20)
    assert [message.body for message, _ in taken] == [str(number) for number in range(20)]
    for _, delivery in taken:
        delivery.update(Delivery.ACCEPTED)
    receiver.wait(lambda: all(delivery.settled for _, delivery in taken), "settlement of all")
    assert {delivery.remote_state for _, delivery in taken} == {Delivery.ACCEPTED}
    assert receiver.drain(10) == []


def test_outcomes_told_just_before_the_link_closes_are_answered(bus):
    bus.send("settle-elsewhere", *range(10))
    receiver = bus.receiver("settle-elsewhere")
    taken = receiver.take(10)
    for _, delivery in taken:
        delivery.update(Delivery.ACCEPTED)
    receiver.link.close()  # in the same write as the outcomes
    receiver.wait(lambda: all(delivery.settled for _, delivery in taken), "settlement of all")
    assert {delivery.remote_state for _, delivery in taken} == {Delivery.ACCEPTED}
