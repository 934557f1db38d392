// N12: receive-and-delete takes messages for good.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, send, receive, isEmpty, numbered } = require("./bus");

test("ten messages are gone when received", () =>
  withClient(async (client) => {
    await send(client, "receive-and-delete", numbered(10).map((body) => ({ body })));
    const receiver = client.createReceiver("receive-and-delete", { receiveMode: "receiveAndDelete" });
    assert.deepEqual((await receive(receiver, 10)).map((message) => message.body), numbered(10));
    assert(await isEmpty(receiver));
  }));
