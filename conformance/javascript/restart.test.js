// N14: the broker dies in the middle of a stream; the client comes back by itself.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { Broker } = require("./broker");
const { Handled } = require("./handled");
const { connectionString } = require("./endpoint");
const { withClient, send, numbered } = require("./bus");

const MESSAGES = 300;

test("a stream survives a crash in its middle", { timeout: 120_000 }, async () => {
  const broker = new Broker();
  try {
    await broker.start();
    const options = {
      string: connectionString({ amqp: broker.ports.amqp }),
      retryOptions: { maxRetries: 10, retryDelayInMs: 500, timeoutInMs: 5000 },
    };
    await withClient(async (client) => {
      await send(client, "streaming-restart", numbered(MESSAGES).map((body) => ({ body })));
      const handled = new Handled();
      const receiver = client.createReceiver("streaming-restart");
      const subscription = receiver.subscribe(
        {
          processMessage: async (message) => {
            handled.add(message.body);
            // What is under way in the crash is refused or never answered; its message comes again.
            receiver.completeMessage(message).catch(() => {});
          },
          processError: async () => {}, // the crash is reported here; what counts is that handling goes on
        },
        { maxConcurrentCalls: 10, autoCompleteMessages: false },
      );
      await handled.atLeast(MESSAGES / 3);
      await broker.restart();
      await handled.atLeast(MESSAGES);
      await subscription.close();
      assert.deepEqual([...handled.different].sort((a, b) => a - b), numbered(MESSAGES));
    }, options);
  } finally {
    await broker.remove();
  }
});
