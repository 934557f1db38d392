// The Competing Consumers pattern: many calls at once on one queue, each message to one of them.
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceBusAdministrationClient, ServiceBusClient } from "@azure/service-bus";
import { adminConnectionString, connectionString } from "./connection.js";

const queue = "competing";
const messages = 100;

const admin = new ServiceBusAdministrationClient(adminConnectionString);
if (!(await admin.queueExists(queue))) {
  await admin.createQueue(queue, { maxDeliveryCount: 3 });
}

const client = new ServiceBusClient(connectionString);
const sender = client.createSender(queue);
const batch = await sender.createMessageBatch();
for (let number = 0; number < messages; number++) batch.tryAddMessage({ body: `message ${number}` });
await sender.sendMessages(batch);

let handled = 0;
const handlers = {
  processMessage: async () => {
    await sleep(10);
    handled += 1;
  },
  processError: async ({ error }) => console.error(error.message),
};
const receiver = client.createReceiver(queue);
let subscription = receiver.subscribe(handlers, { maxConcurrentCalls: 10 });
await sleep(50);
await subscription.close();
console.log(`paused after ${handled}`);
await sleep(200);
subscription = receiver.subscribe(handlers, { maxConcurrentCalls: 10 });
console.log("resumed");
while (handled < messages) await sleep(20);
await subscription.close();
console.log(`${handled} messages handled, ten at a time`);
await client.close();
