// The workers of the Priority Queue pattern: High and Low share everything but their handler.
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceBusClient } from "@azure/service-bus";
import { connectionString } from "./connection.js";

class Worker {
  constructor(client, subscription, instances) {
    this.receiver = client.createReceiver("messages", subscription);
    this.instances = instances;
  }

  start() {
    this.receiver.subscribe(
      {
        processMessage: (message) => this.process(message.body),
        processError: async ({ error }) => console.error(error.message),
      },
      { maxConcurrentCalls: this.instances },
    );
  }
}

class High extends Worker {
  async process(text) {
    await sleep(20);
    console.log(`High: ${text}`);
  }
}

class Low extends Worker {
  async process(text) {
    await sleep(200);
    console.log(` Low: ${text}`);
  }
}

const client = new ServiceBusClient(connectionString);
new High(client, "HighPriority", Number(process.env.HIGH_INSTANCES ?? 4)).start();
new Low(client, "LowPriority", Number(process.env.LOW_INSTANCES ?? 1)).start();
console.log("working; interrupt to stop");
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => client.close());
