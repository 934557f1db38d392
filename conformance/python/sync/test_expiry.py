"""D13 and E17: messages that are too old."""

from datetime import timedelta

from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue

ONE_SECOND = timedelta(seconds=1)


def test_an_expired_message_is_dead_lettered_where_the_queue_says_so(client, send, receive):
    send("expiry-kept", ServiceBusMessage("old", time_to_live=ONE_SECOND))
    with client.get_queue_receiver("expiry-kept", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        [dead] = receive(receiver)
        receiver.complete_message(dead)
    assert (str(dead), dead.dead_letter_reason) == ("old", "TTLExpiredException")
    with client.get_queue_receiver("expiry-kept") as receiver:
        assert receiver.receive_messages(max_wait_time=1) == []


def test_an_expired_message_is_dropped_elsewhere(client, send, receive):
    send("expiry-dropped", ServiceBusMessage("old", time_to_live=ONE_SECOND))
    with client.get_queue_receiver("expiry-dropped", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        assert receiver.receive_messages(max_wait_time=2.5) == []
    with client.get_queue_receiver("expiry-dropped") as receiver:
        assert receiver.receive_messages(max_wait_time=1) == []


def test_the_queue_caps_how_long_a_message_lives(client, send, receive):
    send("expiry-capped", ServiceBusMessage("old", time_to_live=timedelta(hours=1)))
    with client.get_queue_receiver("expiry-capped", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        [dead] = receive(receiver)
        receiver.complete_message(dead)
    assert dead.dead_letter_reason == "TTLExpiredException"
