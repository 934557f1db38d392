"""Our engine as client, Qpid Proton as server.

Proton serves ANONYMOUS without further libraries; PLAIN is covered by rhea.
"""

import threading
from collections import deque

from proton import Condition, Delivery, Described, Terminus, symbol
from proton.handlers import MessagingHandler
from proton.reactor import Container

from peer import call, call_by_client, filter_of


class EchoServer(MessagingHandler):
    """Keeps what is sent and delivers it to whoever asks; runs its own thread until told to stop."""

    def __init__(self):
        super().__init__(prefetch=10, auto_accept=False)
        self.port = None
        self.outcomes = []
        self.filters = []
        self._waiting = deque()
        self._was_busy = False
        self._listening = threading.Event()
        self._container = Container(self)
        self._thread = threading.Thread(target=self._container.run, daemon=True)

    def __enter__(self):
        self._thread.start()
        assert self._listening.wait(timeout=10)
        return self

    def __exit__(self, *_):
        self._thread.join(timeout=10)
        assert not self._thread.is_alive(), "the server ends with its one connection"

    def on_start(self, event):
        self._acceptor = event.container.listen("amqp://127.0.0.1:0")
        # Proton has no public way to learn which port it was given.
        self.port = self._acceptor._selectable.getsockname()[1]
        self._listening.set()

    def on_connection_bound(self, event):
        event.transport.max_frame_size = 4096

    def on_link_opening(self, event):
        link = event.link
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        if link.is_sender:
            self.filters.append(filter_of(link.remote_source))
        if link.remote_source.address == "refused":
            link.source.type = Terminus.UNSPECIFIED

    def on_link_opened(self, event):
        if event.link.remote_source.address == "refused":
            event.link.condition = Condition("amqp:not-found", "nothing is at this address")
            event.link.close()

    def on_message(self, event):
        if event.message.id == "b" and not self._was_busy:
            self._was_busy = True
            event.delivery.local.condition = Condition("com.microsoft:server-busy", "not now")
            self.reject(event.delivery)
            return
        self._waiting.append(event.message)
        self.accept(event.delivery)

    def on_sendable(self, event):
        while event.link.credit and self._waiting:
            event.link.send(self._waiting.popleft())
        if event.link.drain_mode:
            event.link.drained()

    def on_accepted(self, event):
        self.outcomes.append("accepted")

    def on_released(self, event):
        self.outcomes.append("modified" if event.delivery.remote_state == Delivery.MODIFIED else "released")

    def on_rejected(self, event):
        self.outcomes.append("rejected")

    def on_connection_closed(self, event):
        self._acceptor.close()

    on_disconnected = on_connection_closed


def test_a_whole_conversation():
    with EchoServer() as server:
        steps, complaint = call(server.port)
    assert complaint == ""
    assert steps[0].startswith("opened by ")
    assert steps[1:] == [
        "attached sender",
        "sent empty: accepted",
        "sent small: accepted",
        "sent large: accepted",
        "sent last settled",
        "detached sender",
        "attached receiver",
        "received empty: accepted",
        "received small: released",
        "received large: modified",
        "received last: rejected",
        "drained",
        "detached receiver",
        "refused: amqp:not-found",
        "ended",
        "closed",
    ]
    assert server.outcomes == ["accepted", "released", "modified", "rejected"]
    selector = Described(symbol("apache.org:selector-filter:string"), "color = 'red'")
    assert server.filters[0] == {symbol("selector"): selector}


def test_the_client_library():
    with EchoServer() as server:
        steps, complaint = call_by_client(server.port)
    assert complaint == ""
    assert steps == [
        "connected",
        "sent small",
        "sent large",
        "sent busy",
        "received s: completed",
        "received l: abandoned",
        "received b: dead-lettered",
        "drained",
        "refused: nothing is at this address",
        "closed",
    ]
    assert server.outcomes == ["accepted", "modified", "rejected"]
