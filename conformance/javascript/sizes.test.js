// N17: large messages pass whole, too large ones are refused by name.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, impatient, send, receive, take } = require("./bus");

for (const kilobytes of [1, 100, 250]) {
  test(`a message of ${kilobytes} KB arrives whole`, () =>
    withClient(async (client) => {
      const body = Buffer.alloc(kilobytes * 1024, "0123456789");
      await send(client, "sizes", { body });
      const receiver = client.createReceiver("sizes", { skipParsingBodyAsJson: true });
      const [message] = await receive(receiver);
      await receiver.completeMessage(message);
      assert(body.equals(message.body));
    }));
}

test("a message beyond the limit is refused and the sender lives on", () =>
  withClient(async (client) => {
    const sender = client.createSender("sizes");
    await assert.rejects(sender.sendMessages({ body: Buffer.alloc(4 * 1024 * 1024) }), { code: "MessageSizeExceeded" });
    await sender.sendMessages({ body: "small" });
    assert.deepEqual(await take(client.createReceiver("sizes")), ["small"]);
  }, impatient));
