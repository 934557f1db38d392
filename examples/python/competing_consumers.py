"""The Competing Consumers pattern: many consumers on one queue, each message to one of them."""

import asyncio

from azure.core.exceptions import ResourceExistsError
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import AutoLockRenewer, ServiceBusClient
from azure.servicebus.aio.management import ServiceBusAdministrationClient

from connection import ADMIN_CONNECTION_STRING, CERTIFICATE, CONNECTION_STRING

QUEUE = "competing"
MESSAGES = 100
CONCURRENT = 10


async def create_queue() -> None:
    admin = ServiceBusAdministrationClient.from_connection_string(ADMIN_CONNECTION_STRING, connection_verify=CERTIFICATE)
    async with admin:
        try:
            await admin.create_queue(QUEUE, max_delivery_count=3)
        except ResourceExistsError:
            pass


async def consume(client: ServiceBusClient, number: int, left: asyncio.Queue, running: asyncio.Event) -> int:
    handled = 0
    async with client.get_queue_receiver(QUEUE) as receiver, AutoLockRenewer() as renewer:
        while not left.empty():
            await running.wait()
            for message in await receiver.receive_messages(max_message_count=1, max_wait_time=1):
                renewer.register(receiver, message, max_lock_renewal_duration=300)
                await asyncio.sleep(0.01)
                await receiver.complete_message(message)
                handled += 1
                left.get_nowait()
    print(f"consumer {number} handled {handled} messages")
    return handled


async def main() -> None:
    await create_queue()
    async with ServiceBusClient.from_connection_string(CONNECTION_STRING) as client:
        async with client.get_queue_sender(QUEUE) as sender:
            batch = await sender.create_message_batch()
            for number in range(MESSAGES):
                batch.add_message(ServiceBusMessage(f"message {number}"))
            await sender.send_messages(batch)
        left: asyncio.Queue = asyncio.Queue()
        for number in range(MESSAGES):
            left.put_nowait(number)
        running = asyncio.Event()
        running.set()
        consumers = [asyncio.create_task(consume(client, number, left, running)) for number in range(CONCURRENT)]
        await asyncio.sleep(0.1)
        running.clear()
        print("paused")
        await asyncio.sleep(0.2)
        running.set()
        print("resumed")
        handled = await asyncio.gather(*consumers)
        print(f"{sum(handled)} messages, each by one of {CONCURRENT} consumers")


if __name__ == "__main__":
    asyncio.run(main())
