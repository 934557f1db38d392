"""Beyond Service Bus: the level of a message decides who is first, and it is kept for life."""

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageHeader


def with_header(body, priority):
    return AmqpAnnotatedMessage(data_body=body.encode(), header=AmqpMessageHeader(priority=priority))


def with_property(body, priority):
    return ServiceBusMessage(body, application_properties={"Priority": priority})


@pytest.fixture
def take(receive):
    def take(receiver, count):
        messages = receive(receiver, count)
        for message in messages:
            receiver.complete_message(message)
        return [str(message) for message in messages]

    return take


def test_the_header_orders_deliveries(client, send, take):
    send("priority-header", with_header("low", 1), ServiceBusMessage("default"), with_header("high", 7))
    with client.get_queue_receiver("priority-header") as receiver:
        assert take(receiver, 3) == ["high", "default", "low"]


def test_the_property_orders_deliveries_as_number_or_class(client, send, take):
    send(
        "priority-property",
        with_property("low", "low"),
        with_property("unknown counts as default", "whenever"),
        with_property("seven", 7),
        with_property("urgent", "Urgent"),
        with_property("high", "HIGH"),
    )
    with client.get_queue_receiver("priority-property") as receiver:
        assert take(receiver, 5) == ["urgent", "seven", "high", "unknown counts as default", "low"]


def test_an_abandoned_message_keeps_its_level_and_its_place(client, send, receive, take):
    send("priority-kept", with_header("high 1", 7), with_header("high 2", 7), with_header("low", 1))
    with client.get_queue_receiver("priority-kept") as receiver:
        [first] = receive(receiver)
        assert str(first) == "high 1"
        receiver.abandon_message(first)
        send("priority-kept", with_header("urgent", 9))
        assert take(receiver, 4) == ["urgent", "high 1", "high 2", "low"]


def test_dead_letters_keep_their_level(client, send, receive, take):
    send("priority-dead-letter", with_header("low", 1), with_header("high", 7))
    with client.get_queue_receiver("priority-dead-letter") as receiver:
        high, low = receive(receiver, 2)
        receiver.dead_letter_message(low)
        receiver.dead_letter_message(high)
    with client.get_queue_receiver("priority-dead-letter", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        assert take(receiver, 2) == ["high", "low"]
