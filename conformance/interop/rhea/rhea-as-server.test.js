// Our engine as client, rhea as server, with and without a password.
"use strict";

const assert = require("node:assert/strict");
const { once } = require("node:events");
const test = require("node:test");
const rhea = require("rhea");
const { call, callByClient, LOGIN } = require("./peer");

const STEPS = [
  "attached sender",
  "sent empty: accepted",
  "sent small: accepted",
  "sent large: accepted",
  "sent last settled",
  "detached sender",
  "attached receiver",
  "received empty: accepted",
  "received small: released",
  "received large: modified",
  "received last: rejected",
  "drained",
  "detached receiver",
  "refused: amqp:not-found",
  "ended",
  "closed",
];

/** A server that keeps what is sent and delivers it to whoever asks; `seen` collects what the engine told it. */
function echoServer({ plain }) {
  const container = rhea.create_container();
  const seen = { outcomes: [], filters: [] };
  const waiting = [];
  if (plain) {
    container.sasl_server_mechanisms.enable_plain(
      (username, password) => username === LOGIN.username && password === LOGIN.password,
    );
  } else {
    container.sasl_server_mechanisms.enable_anonymous();
  }
  let wasBusy = false;
  container.on("message", ({ message, delivery }) => {
    if (message.message_id === "b" && !wasBusy) {
      wasBusy = true;
      delivery.reject({ condition: "com.microsoft:server-busy", description: "not now" });
      return;
    }
    waiting.push(message);
    delivery.accept();
  });
  container.on("receiver_open", ({ receiver }) => receiver.set_target(receiver.remote.attach.target));
  container.on("sender_open", ({ sender }) => {
    const { source } = sender.remote.attach;
    if (source.address === "refused") {
      sender.close({ condition: "amqp:not-found", description: "nothing is at this address" });
      return;
    }
    sender.set_source(source);
    seen.filters.push(source.filter);
  });
  container.on("sendable", ({ sender }) => {
    while (sender.sendable() && waiting.length > 0) sender.send(waiting.shift());
  });
  container.on("sender_draining", ({ sender }) => sender.set_drained(true));
  for (const outcome of ["accepted", "released", "modified", "rejected"]) {
    container.on(outcome, () => seen.outcomes.push(outcome));
  }
  const options = { port: 0, host: "127.0.0.1", max_frame_size: 4096, sender_options: { treat_modified_as_released: false } };
  return { server: container.listen(options), seen };
}

async function converse(options, caller, ...login) {
  const { server, seen } = echoServer(options);
  await once(server, "listening");
  try {
    return { ...(await caller(server.address().port, ...login)), seen };
  } finally {
    server.close();
  }
}

for (const [name, plain, login] of [["anonymously", false, []], ["with a password", true, Object.values(LOGIN)]]) {
  test(`a whole conversation, ${name}`, async () => {
    const { steps, complaint, seen } = await converse({ plain }, call, ...login);
    assert.equal(complaint, "");
    assert.match(steps[0], /^opened by /);
    assert.deepEqual(steps.slice(1), STEPS);
    assert.deepEqual(seen.outcomes, ["accepted", "released", "modified", "rejected"]);
    assert.equal(String(seen.filters[0].selector.value ?? seen.filters[0].selector), "color = 'red'");
  });
}

const CLIENT_STEPS = [
  "connected",
  "sent small",
  "sent large",
  "sent busy",
  "received s: completed",
  "received l: abandoned",
  "received b: dead-lettered",
  "drained",
  "refused: nothing is at this address",
  "closed",
];

for (const [name, plain, login] of [["anonymously", false, []], ["with a password", true, Object.values(LOGIN)]]) {
  test(`the client library, ${name}`, async () => {
    const { steps, complaint, seen } = await converse({ plain }, callByClient, ...login);
    assert.equal(complaint, "");
    assert.deepEqual(steps, CLIENT_STEPS);
    assert.deepEqual(seen.outcomes, ["accepted", "modified", "rejected"]);
  });
}

test("a refused password ends the conversation", async () => {
  const { steps, complaint } = await converse({ plain: true }, call, LOGIN.username, "guess");
  assert.deepEqual(steps, []);
  assert.notEqual(complaint, "");
});
