// N3: an empty queue gives an empty result, and the receiver lives on. The SDK drains its leftover
// credit at the end of every call, so a second call shows that the broker answered the drain.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, send, take } = require("./bus");

test("receiving from an empty queue returns nothing after the wait", () =>
  withClient(async (client) => {
    const receiver = client.createReceiver("empty-receive");
    const started = Date.now();
    assert.deepEqual(await receiver.receiveMessages(5, { maxWaitTimeInMs: 2000 }), []);
    const elapsed = Date.now() - started;
    assert(elapsed > 1500 && elapsed < 5000, `took ${elapsed} ms`);

    await send(client, "empty-receive", { body: "late" });
    assert.deepEqual(await take(receiver), ["late"]);
  }));

test("a call for more than there is returns what there is, again and again", () =>
  withClient(async (client) => {
    const receiver = client.createReceiver("empty-receive");
    for (const body of ["one", "two", "three"]) {
      await send(client, "empty-receive", { body });
      const [message, ...others] = await receiver.receiveMessages(20, { maxWaitTimeInMs: 10_000 });
      assert.equal(message.body, body);
      assert.deepEqual(others, []);
      await receiver.completeMessage(message);
    }
  }));
