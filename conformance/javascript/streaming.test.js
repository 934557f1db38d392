// N13: a streaming receiver with ten handlers at a time.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { Handled } = require("./handled");
const { withClient, isEmpty, numbered } = require("./bus");

const MESSAGES = 1000;

test("a thousand messages are handled ten at a time", { timeout: 60_000 }, () =>
  withClient(async (client) => {
    const sender = client.createSender("streaming");
    const batch = await sender.createMessageBatch();
    for (const body of numbered(MESSAGES)) assert(batch.tryAddMessage({ body }));
    await sender.sendMessages(batch);

    const handled = new Handled();
    const errors = [];
    let running = 0;
    let runningMost = 0;
    const receiver = client.createReceiver("streaming");
    const subscription = receiver.subscribe(
      {
        processMessage: async (message) => {
          running += 1;
          runningMost = Math.max(runningMost, running);
          await receiver.completeMessage(message);
          running -= 1;
          handled.add(message.body);
        },
        processError: async ({ error }) => errors.push(error),
      },
      { maxConcurrentCalls: 10, autoCompleteMessages: false },
    );
    await handled.atLeast(MESSAGES);
    await subscription.close();
    await receiver.close();

    assert.deepEqual(errors, []);
    assert.deepEqual(handled.bodies.sort((a, b) => a - b), numbered(MESSAGES));
    assert(runningMost <= 10, `${runningMost} handlers ran at once`);
    assert(await isEmpty(client.createReceiver("streaming")));
  }));
