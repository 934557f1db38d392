"""N1 to N3 and N12: in, out, gone."""

from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode


async def test_a_completed_message_leaves_the_queue_empty(client, send, receive, is_empty):
    await send("send-receive", ServiceBusMessage("hello", message_id="m-1"))
    async with client.get_queue_receiver("send-receive") as receiver:
        [message] = await receive(receiver)
        assert (str(message), message.message_id) == ("hello", "m-1")
        await receiver.complete_message(message)
        assert await is_empty(receiver)


async def test_a_batch_of_100_arrives_in_order_in_chunks_of_10(client, receive, is_empty):
    async with client.get_queue_sender("batch") as sender:
        batch = await sender.create_message_batch()
        for number in range(100):
            batch.add_message(ServiceBusMessage(str(number)))
        await sender.send_messages(batch)
    bodies = []
    async with client.get_queue_receiver("batch") as receiver:
        while len(bodies) < 100:
            for message in await receive(receiver, 10):
                bodies.append(str(message))
                await receiver.complete_message(message)
        assert await is_empty(receiver)
    assert bodies == [str(number) for number in range(100)]


async def test_an_empty_queue_gives_nothing_and_the_receiver_lives_on(client, send, receive):
    async with client.get_queue_receiver("empty-receive") as receiver:
        assert await receiver.receive_messages(max_message_count=5, max_wait_time=2) == []
        await send("empty-receive", ServiceBusMessage("late"))
        [message] = await receive(receiver)
        await receiver.complete_message(message)
        assert str(message) == "late"


async def test_ten_messages_are_gone_when_received_and_deleted(client, send, receive, is_empty):
    await send("receive-and-delete", *[ServiceBusMessage(str(number)) for number in range(10)])
    async with client.get_queue_receiver(
        "receive-and-delete", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE
    ) as receiver:
        assert [str(message) for message in await receive(receiver, 10)] == [str(number) for number in range(10)]
        assert await is_empty(receiver)
