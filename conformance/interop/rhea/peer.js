// Our protocol engine as a process: serving until we let go of it, or calling a server of ours.
"use strict";

const { spawn } = require("node:child_process");
const { once } = require("node:events");
const { createInterface } = require("node:readline");
const { text } = require("node:stream/consumers");

const PEER = process.env.VORRANG_INTEROP_PEER;
const LOGIN = { username: "guest", password: "secret" };

/** Runs `story` with the port of a serving engine, which ends when its input does. */
async function withServingPeer(story) {
  const peer = spawn(PEER, ["serve"], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(peer, "exit");
  try {
    const [line] = await once(createInterface({ input: peer.stdout }), "line");
    return await story(Number(line.split(" ")[1]));
  } finally {
    peer.stdin.end();
    await ended;
  }
}

/** Lets the engine talk to a server of ours; the steps it got through, and what it complained about. */
async function call(port, ...login) {
  const peer = spawn(PEER, ["call", String(port), ...login], { stdio: ["ignore", "pipe", "pipe"] });
  const [steps, complaint] = await Promise.all([text(peer.stdout), text(peer.stderr)]);
  return { steps: steps.split("\n").filter(Boolean), complaint };
}

module.exports = { withServingPeer, call, LOGIN };
