// N22: two clients share a queue; every message is handled, and none twice.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { Handled } = require("./handled");
const { withClient, isEmpty, numbered } = require("./bus");

const MESSAGES = 10_000;

test("ten thousand messages are shared without loss or repeat", { timeout: 120_000 }, () =>
  withClient((first) =>
    withClient(async (second) => {
      const sender = first.createSender("competing");
      for (let start = 0; start < MESSAGES; start += 1000) {
        await sender.sendMessages(numbered(1000).map((number) => ({ body: start + number })));
      }

      const handled = new Handled();
      const shares = [0, 0];
      const errors = [];
      const subscriptions = [first, second].map((client, share) => {
        const receiver = client.createReceiver("competing");
        return receiver.subscribe(
          {
            processMessage: async (message) => {
              await receiver.completeMessage(message);
              shares[share] += 1;
              handled.add(message.body);
            },
            processError: async ({ error }) => errors.push(error),
          },
          { maxConcurrentCalls: 100, autoCompleteMessages: false },
        );
      });
      await handled.atLeast(MESSAGES);
      for (const subscription of subscriptions) await subscription.close();

      assert.deepEqual(errors, []);
      assert.deepEqual(handled.bodies.sort((a, b) => a - b), numbered(MESSAGES));
      assert(shares.every((share) => share > 0), `shares ${shares}`);
      assert(await isEmpty(first.createReceiver("competing")));
    }),
  ));
