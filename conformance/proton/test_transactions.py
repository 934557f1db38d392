"""I: several operations, all or nothing."""

import pytest
from proton import Delivery, Message
from proton.handlers import MessagingHandler, TransactionHandler

from bus import Bus


# AMQP 1.0 4.5.8; Proton has no name for it.
TRANSACTIONAL_STATE = 0x34


class Transaction(MessagingHandler, TransactionHandler):
    """A transaction on the bus's connection, from declare to discharge."""

    def __init__(self, bus):
        MessagingHandler.__init__(self, prefetch=0, auto_settle=False)
        self._connection = bus.connection
        self._events = []
        self._transaction = bus.connection.container.declare_transaction(bus.connection.conn, handler=self)
        self._until("declared")

    def commit(self):
        self._transaction.commit()
        self._until("committed")

    def roll_back(self):
        self._transaction.abort()
        self._until("aborted")

    def send(self, sender, body):
        delivery = self._transaction.send(sender.link, Message(body=body))
        self._connection.wait(lambda: delivery.remote_state, msg="waiting for the transactional outcome")
        assert delivery.remote_state == TRANSACTIONAL_STATE

    def accept(self, delivery):
        self._transaction.update(delivery, Delivery.ACCEPTED)
        self._connection.wait(lambda: delivery.settled, msg="waiting for the transactional settlement")
        assert delivery.remote_state == TRANSACTIONAL_STATE
        delivery.settle()

    def on_transaction_declared(self, event):
        self._events.append("declared")

    def on_transaction_committed(self, event):
        self._events.append("committed")

    def on_transaction_aborted(self, event):
        self._events.append("aborted")

    def on_transaction_declare_failed(self, event):
        self._events.append("declare failed")

    def on_transaction_commit_failed(self, event):
        self._events.append("commit failed")

    def _until(self, expected):
        self._connection.wait(lambda: self._events, msg=f"waiting until {expected}")
        assert self._events.pop(0) == expected


@pytest.fixture
def sender(bus):
    return bus.connection.create_sender("transaction-to")


def test_a_transactional_send_shows_at_commit(bus, sender):
    receiver = bus.receiver("transaction-to")
    transaction = Transaction(bus)
    transaction.send(sender, "a")
    transaction.send(sender, "b")
    assert receiver.drain(10) == []
    transaction.commit()
    assert [message.body for message, delivery in receiver.drain(10) if receiver.accept(delivery) is None] == ["a", "b"]


def test_a_rolled_back_send_never_shows(bus, sender):
    receiver = bus.receiver("transaction-to")
    transaction = Transaction(bus)
    transaction.send(sender, "never")
    transaction.roll_back()
    assert receiver.drain(10) == []


def test_receive_process_send_is_atomic(bus, sender):
    bus.send("transaction-from", "order")
    source = bus.receiver("transaction-from")
    [(message, delivery)] = source.take()
    transaction = Transaction(bus)
    transaction.send(sender, f"result of {message.body}")
    transaction.accept(delivery)
    transaction.commit()
    assert bus.take("transaction-to", 1) == ["result of order"]
    assert source.drain(10) == []


def test_a_lost_connection_rolls_back(bus, sender):
    with Bus() as other:
        transaction = Transaction(other)
        transaction.send(other.connection.create_sender("transaction-to"), "never")
    assert bus.receiver("transaction-to").drain(10) == []
