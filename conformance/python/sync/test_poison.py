"""E16 to E19: a message nobody can handle ends in the dead-letter queue, and stays there."""

from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue

MAX_DELIVERY_COUNT = 3


def test_a_message_abandoned_too_often_is_dead_lettered(client, send, receive):
    send("poison", ServiceBusMessage("poison"))
    with client.get_queue_receiver("poison") as receiver:
        for attempt in range(MAX_DELIVERY_COUNT):
            [message] = receive(receiver)
            assert message.delivery_count == attempt
            receiver.abandon_message(message)
        assert receiver.receive_messages(max_wait_time=1) == []

    with client.get_queue_receiver("poison", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        for _ in range(MAX_DELIVERY_COUNT + 2):
            [dead] = receive(receiver)
            assert dead.dead_letter_reason == "MaxDeliveryCountExceeded"
            assert dead.dead_letter_source == "poison"
            receiver.abandon_message(dead)
        [dead] = receive(receiver)
        receiver.complete_message(dead)
