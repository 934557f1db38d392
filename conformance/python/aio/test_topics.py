"""N11: one message in, a copy for every subscription whose rules match."""

from azure.servicebus import ServiceBusMessage


async def test_rules_choose_the_copies(client, receive):
    async with client.get_topic_sender("orders") as sender:
        await sender.send_messages(
            [
                ServiceBusMessage("urgent", application_properties={"Priority": "High"}),
                ServiceBusMessage("european", subject="order", application_properties={"region": "eu"}),
            ]
        )
    for subscription, expected in [("high", ["urgent"]), ("europe", ["european"]), ("all", ["urgent", "european"])]:
        async with client.get_subscription_receiver("orders", subscription) as receiver:
            messages = await receive(receiver, len(expected))
            assert [str(message) for message in messages] == expected
            for message in messages:
                await receiver.complete_message(message)
