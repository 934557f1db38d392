// N2: batches out, chunks in.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, take, isEmpty, numbered } = require("./bus");

test("a batch of 100 arrives in order in chunks of 10", () =>
  withClient(async (client) => {
    const sender = client.createSender("batch");
    const batch = await sender.createMessageBatch();
    for (const body of numbered(100)) assert(batch.tryAddMessage({ body }));
    await sender.sendMessages(batch);

    const receiver = client.createReceiver("batch");
    const bodies = [];
    while (bodies.length < 100) bodies.push(...(await take(receiver, 10)));
    assert.deepEqual(bodies, numbered(100));
    assert(await isEmpty(receiver));
  }));

test("a batch tells when it is full", () =>
  withClient(async (client) => {
    const batch = await client.createSender("batch-limit").createMessageBatch({ maxSizeInBytes: 1024 });
    let added = 0;
    while (batch.tryAddMessage({ body: "x".repeat(100) })) added += 1;
    assert(added > 0 && added < 11);
  }));
