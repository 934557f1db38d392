// What every test needs: a client that is closed whatever happens, and waiting for messages by count
// instead of by time.
"use strict";

const { ServiceBusClient } = require("@azure/service-bus");
const { connectionString } = require("./endpoint");

const PATIENCE_MS = 20_000;

/** Runs `story` with a client and closes it afterwards. */
async function withClient(story, { string = connectionString(), ...options } = {}) {
  const client = new ServiceBusClient(string, options);
  try {
    return await story(client);
  } finally {
    await client.close();
  }
}

/** Options of a client that reports the broker's first answer instead of trying again. */
const impatient = { retryOptions: { maxRetries: 0 } };

async function send(client, entity, messages) {
  const sender = client.createSender(entity);
  await sender.sendMessages(messages);
  await sender.close();
}

/** Receives exactly `count` messages, in as many calls as it takes. */
async function receive(receiver, count = 1) {
  const received = [];
  const giveUpAt = Date.now() + PATIENCE_MS;
  while (received.length < count) {
    const left = giveUpAt - Date.now();
    if (left <= 0) throw new Error(`only ${received.length} of ${count} messages arrived`);
    received.push(...(await receiver.receiveMessages(count - received.length, { maxWaitTimeInMs: left })));
  }
  return received;
}

/** Receives exactly `count` messages, completes them and returns their bodies. */
async function take(receiver, count = 1) {
  const messages = await receive(receiver, count);
  for (const message of messages) await receiver.completeMessage(message);
  return messages.map((message) => message.body);
}

/** Whether nothing at all is stored behind a receiver: not active, locked, deferred or scheduled. */
async function isEmpty(receiver) {
  return (await receiver.peekMessages(1)).length === 0;
}

/** The numbers from 0 up to `count`, as bodies. */
const numbered = (count) => Array.from({ length: count }, (_, number) => number);

module.exports = { withClient, impatient, send, receive, take, isEmpty, numbered };
