"""N11 and K: one message in, a copy for every subscription whose rules match."""

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage, ServiceBusSubQueue


@pytest.fixture
def publish(client):
    def publish(topic, *messages):
        with client.get_topic_sender(topic) as sender:
            sender.send_messages(list(messages))

    return publish


@pytest.fixture
def take_all(client):
    """Completes and returns what a subscription holds."""

    def take_all(topic, subscription):
        taken = []
        with client.get_subscription_receiver(topic, subscription) as receiver:
            waiting = len(receiver.peek_messages(max_message_count=100))
            while len(taken) < waiting:
                for message in receiver.receive_messages(max_message_count=waiting, max_wait_time=5):
                    receiver.complete_message(message)
                    taken.append(message)
        return taken

    return take_all


def test_every_subscription_gets_its_own_copy(publish, take_all):
    publish("fan-out", ServiceBusMessage("news"))
    assert [str(message) for message in take_all("fan-out", "first")] == ["news"]
    assert [str(message) for message in take_all("fan-out", "second")] == ["news"]


def test_rules_choose_and_actions_change_only_the_copy(publish, take_all):
    publish(
        "orders",
        ServiceBusMessage("urgent", application_properties={"Priority": "High", "region": "us", "amount": 5}),
        ServiceBusMessage("cheap", subject="order", application_properties={"region": "eu", "amount": 5}),
        ServiceBusMessage("dear", subject="order", application_properties={"region": "eu", "amount": 500}),
        ServiceBusMessage("bare"),
    )
    bodies = lambda subscription: [str(message) for message in take_all("orders", subscription)]
    assert bodies("high") == ["urgent"]
    assert bodies("europe") == ["cheap", "dear"]
    assert bodies("never") == []

    [marked] = take_all("orders", "marked")
    assert (str(marked), marked.subject) == ("dear", "marked")
    assert marked.application_properties == {b"amount": 500, b"size": b"large", b"RuleName": b"mark-large"}

    everything = {str(message): message for message in take_all("orders", "all")}
    assert set(everything) == {"urgent", "cheap", "dear", "bare"}
    assert everything["dear"].subject == "order"
    assert everything["dear"].application_properties[b"region"] == b"eu"


def test_a_session_subscription_dead_letters_what_has_no_session(client, publish, receive):
    publish("session-topic", ServiceBusMessage("homeless"), ServiceBusMessage("housed", session_id="s"))
    with client.get_subscription_receiver("session-topic", "plain") as receiver:
        for message in receive(receiver, 2):
            receiver.complete_message(message)

    sessions = client.get_subscription_receiver("session-topic", "sessions", session_id=NEXT_AVAILABLE_SESSION)
    with sessions as receiver:
        [message] = receive(receiver)
        assert str(message) == "housed"
        receiver.complete_message(message)

    dead_letters = client.get_subscription_receiver(
        "session-topic", "sessions", sub_queue=ServiceBusSubQueue.DEAD_LETTER
    )
    with dead_letters as receiver:
        [dead] = receive(receiver)
        assert (str(dead), dead.dead_letter_reason) == ("homeless", "Session id is null.")
        assert dead.dead_letter_source.lower() == "session-topic/subscriptions/sessions"
        receiver.complete_message(dead)
