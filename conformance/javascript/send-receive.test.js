// N1: a message sent is received once, and gone when completed.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, send, receive, isEmpty } = require("./bus");

test("a completed message leaves the queue empty", () =>
  withClient(async (client) => {
    await send(client, "send-receive", { body: "hello", messageId: "m-1", subject: "greeting" });
    const receiver = client.createReceiver("send-receive");
    const [message] = await receive(receiver);
    assert.deepEqual([message.body, message.messageId, message.subject], ["hello", "m-1", "greeting"]);
    await receiver.completeMessage(message);
    assert(await isEmpty(receiver));
  }));

test("a message without id gets one from the broker", () =>
  withClient(async (client) => {
    await send(client, "ids", [{ body: 1 }, { body: 2 }]);
    const receiver = client.createReceiver("ids");
    const messages = await receive(receiver, 2);
    for (const message of messages) await receiver.completeMessage(message);
    const ids = messages.map((message) => message.messageId);
    assert(ids.every((id) => typeof id === "string" && id.length > 0));
    assert.notEqual(ids[0], ids[1]);
  }));
