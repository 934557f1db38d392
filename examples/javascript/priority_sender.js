// The sender of the Priority Queue pattern: batches of ten low and ten high messages.
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceBusClient } from "@azure/service-bus";
import { connectionString } from "./connection.js";

const rounds = Number(process.argv[2] ?? 10);
const client = new ServiceBusClient(connectionString);
const sender = client.createSender("messages");
for (let round = 1; round <= rounds; round++) {
  for (const priority of ["Low", "High"]) {
    const batch = await sender.createMessageBatch();
    for (let number = 0; number < 10; number++) {
      const body = `${priority} message ${number} of round ${round}`;
      batch.tryAddMessage({ body, applicationProperties: { Priority: priority } });
    }
    await sender.sendMessages(batch);
    console.log(`sent ten messages of priority ${priority}`);
  }
  await sleep(500);
}
await client.close();
