"""N20: what a closing receiver had fetched but not handled goes to the next one."""

from azure.servicebus import ServiceBusMessage

MESSAGES = 5


def test_messages_left_in_the_buffer_are_given_back_uncounted(client, send, receive):
    send("prefetch-left", *[ServiceBusMessage(str(number)) for number in range(MESSAGES)])
    with client.get_queue_receiver("prefetch-left", prefetch_count=MESSAGES) as hoarder:
        [taken] = hoarder.receive_messages(max_message_count=1, max_wait_time=10)
        hoarder.complete_message(taken)

    with client.get_queue_receiver("prefetch-left") as receiver:
        rest = receive(receiver, MESSAGES - 1)
        assert sorted(str(message) for message in rest) == [str(number) for number in range(1, MESSAGES)]
        assert [message.delivery_count for message in rest] == [0] * (MESSAGES - 1)
        for message in rest:
            receiver.complete_message(message)
