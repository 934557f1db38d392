// N20: what a receiver did not take is there for the next one, uncounted. The SDK drains its credit before it
// returns or closes, so the broker must not lose or lock a message in between.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, send, receive, numbered } = require("./bus");

test("a closing receiver leaves the rest to the next one", () =>
  withClient(async (client) => {
    await send(client, "prefetch-left", numbered(5).map((body) => ({ body })));
    const first = client.createReceiver("prefetch-left");
    const [taken] = await receive(first, 1);
    await first.completeMessage(taken);
    await first.close();

    const second = client.createReceiver("prefetch-left");
    const rest = await receive(second, 4);
    assert.deepEqual(rest.map(({ body, deliveryCount }) => [body, deliveryCount]), [[1, 0], [2, 0], [3, 0], [4, 0]]);
    for (const message of rest) await second.completeMessage(message);
  }));
