// N8: messages for later.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, impatient, receive, isEmpty } = require("./bus");

test("scheduled messages arrive at their time and not before", () =>
  withClient(async (client) => {
    const due = new Date(Date.now() + 3000);
    const numbers = await client.createSender("schedule").scheduleMessages([{ body: "a" }, { body: "b" }], due);
    assert.equal(numbers.length, 2);
    const receiver = client.createReceiver("schedule");
    const messages = await receive(receiver, 2);
    assert.deepEqual(messages.map((message) => message.body), ["a", "b"]);
    for (const message of messages) {
      const lateness = message.enqueuedTimeUtc - due;
      assert(lateness >= -100 && lateness < 1000, `enqueued ${lateness} ms after its time`);
      await receiver.completeMessage(message);
    }
  }));

test("a cancelled message never arrives and cannot be cancelled again", () =>
  withClient(async (client) => {
    const sender = client.createSender("cancel");
    const numbers = await sender.scheduleMessages([{ body: "a" }, { body: "b" }], new Date(Date.now() + 3_600_000));
    await sender.cancelScheduledMessages(numbers);
    assert(await isEmpty(client.createReceiver("cancel")));
    await assert.rejects(sender.cancelScheduledMessages(numbers));
  }, impatient));
