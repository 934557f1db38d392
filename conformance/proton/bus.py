"""A plain AMQP 1.0 client on Qpid Proton: user name and password, links, credit and outcomes, nothing of Service Bus.

Everything waits on a condition of the connection, never on time passing.
"""

import os
from collections import deque

import cproton
from proton import Delivery, Message, SSLDomain
from proton.handlers import MessagingHandler
from proton.reactor import AtLeastOnce
from proton.utils import BlockingConnection

HOST = "localhost"
KEY_NAME = "RootManageSharedAccessKey"
KEY = "SAS_KEY_VALUE"
PATIENCE_SECONDS = 20


def port_of(scheme):
    """Where the broker under test listens, as the runner told us."""
    return int(os.environ[f"VORRANG_{scheme.upper()}_PORT"])


def tag_of(delivery):
    """The delivery tag as bytes; Proton's own property takes every tag for text."""
    tag = cproton.lib.pn_delivery_tag(delivery._impl)
    return bytes(cproton.ffi.buffer(tag.start, tag.size))


class Inbox(MessagingHandler):
    """Keeps what arrives on a link until the test asks for it."""

    def __init__(self):
        super().__init__(prefetch=0, auto_accept=False, auto_settle=False)
        self.arrived = deque()

    def on_message(self, event):
        message = event.message
        if isinstance(message.body, memoryview):
            message.body = bytes(message.body)  # Proton reuses the memory it lends us
        self.arrived.append((message, event.delivery))


class Receiver:
    """A receiving link whose credit the test gives out itself."""

    def __init__(self, connection, address, options, name=None):
        self._connection = connection
        self._inbox = Inbox()
        self.blocking = connection.create_receiver(
            address, credit=0, handler=self._inbox, options=options, name=name
        )
        self.link = self.blocking.link

    def take(self, count=1, credit=None):
        """Gives credit (as much as is asked for, if not said otherwise) and returns the messages with their deliveries."""
        if count_of_credit := count - len(self._inbox.arrived) if credit is None else credit:
            self.link.flow(count_of_credit)
        self.wait(lambda: len(self._inbox.arrived) >= count, f"{count} messages")
        return [self._inbox.arrived.popleft() for _ in range(count)]

    def drain(self, credit):
        """Asks for what there is, at most `credit`, and returns it when the broker says that was all."""
        self.link.drain(credit)
        self.wait(lambda: not self.link.draining(), "the end of the drain")
        found = list(self._inbox.arrived)
        self._inbox.arrived.clear()
        return found

    def settle(self, delivery, outcome):
        """Proposes an outcome, waits until the broker settles, and returns the outcome it reports."""
        delivery.update(outcome)
        self.wait(lambda: delivery.settled, "settlement by the broker")
        reported, condition = delivery.remote_state, delivery.remote.condition
        delivery.settle()
        return reported, condition

    def accept(self, delivery):
        assert self.settle(delivery, Delivery.ACCEPTED) == (Delivery.ACCEPTED, None)

    def wait(self, condition, what):
        self._connection.wait(condition, msg=f"waiting for {what}")

    def close(self):
        self.blocking.close()


class Bus:
    """One connection, to the broker under test unless a port says otherwise."""

    def __init__(self, scheme="amqp", port=None, user=KEY_NAME, password=KEY, mechanism="PLAIN", **options):
        domain = None
        if scheme == "amqps":
            domain = SSLDomain(SSLDomain.MODE_CLIENT)
            domain.set_trusted_ca_db(os.environ["VORRANG_CERTIFICATE"])
            domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
        self.connection = BlockingConnection(
            f"{scheme}://{HOST}:{port or port_of(scheme)}",
            timeout=PATIENCE_SECONDS,
            ssl_domain=domain,
            user=user,
            password=password,
            allowed_mechs=mechanism,
            allow_insecure_mechs=True,
            **options,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def send(self, address, *messages):
        """Sends and returns when every message was accepted."""
        sender = self.connection.create_sender(address)
        for message in messages:
            sender.send(message if isinstance(message, Message) else Message(body=message))
        sender.close()

    def receiver(self, address, *options, name=None):
        """A peek-lock receiver without credit."""
        return Receiver(self.connection, address, [AtLeastOnce(), *options], name)

    def take(self, address, count, *options):
        """Receives and accepts exactly `count` messages and returns their bodies."""
        receiver = self.receiver(address, *options)
        bodies = []
        for message, delivery in receiver.take(count):
            receiver.accept(delivery)
            bodies.append(message.body)
        receiver.close()
        return bodies
