"""The workers of the Priority Queue pattern: High and Low share a base and differ in their handler."""

import asyncio
import os
import signal

from azure.servicebus.aio import ServiceBusClient

from connection import CONNECTION_STRING


class Worker:
    """Receives from one subscription with so many instances."""

    subscription: str
    variable: str
    instances: int

    async def process(self, text: str) -> None:
        raise NotImplementedError

    async def run(self, client: ServiceBusClient, stop: asyncio.Event) -> None:
        count = int(os.environ.get(self.variable, self.instances))
        await asyncio.gather(*(self.instance(client, stop) for _ in range(count)))

    async def instance(self, client: ServiceBusClient, stop: asyncio.Event) -> None:
        async with client.get_subscription_receiver("messages", self.subscription) as receiver:
            while not stop.is_set():
                for message in await receiver.receive_messages(max_message_count=1, max_wait_time=1):
                    await self.process(str(message))
                    await receiver.complete_message(message)


class High(Worker):
    subscription, variable, instances = "HighPriority", "HIGH_INSTANCES", 4

    async def process(self, text: str) -> None:
        await asyncio.sleep(0.02)
        print(f"High: {text}", flush=True)


class Low(Worker):
    subscription, variable, instances = "LowPriority", "LOW_INSTANCES", 1

    async def process(self, text: str) -> None:
        await asyncio.sleep(0.2)
        print(f" Low: {text}", flush=True)


async def main() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    print("working; interrupt to stop", flush=True)
    async with ServiceBusClient.from_connection_string(CONNECTION_STRING) as client:
        await asyncio.gather(High().run(client, stop), Low().run(client, stop))


if __name__ == "__main__":
    asyncio.run(main())
