// A broker of our own, for the stories in which it dies and comes back. It keeps its ports and its data
// directory over a restart, as a service under a supervisor does.
"use strict";

const { spawn } = require("node:child_process");
const { once } = require("node:events");
const { mkdtempSync, rmSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const { createInterface } = require("node:readline");

const PORTS = ["amqp", "amqps", "http", "https"];
const DOOR = /^(amqps?|https?)\s+\S+:(\d+)/;
const READY_LINE = "vorrang is ready";
const READY_WITHIN_MS = 20_000;

class Broker {
  constructor() {
    this.directory = mkdtempSync(join(tmpdir(), "vorrang-conformance-"));
    this.ports = Object.fromEntries(PORTS.map((name) => [name, 0]));
  }

  /** Starts the process and resolves when it is ready. */
  async start() {
    const ports = PORTS.flatMap((name) => [`--${name}-port`, String(this.ports[name])]);
    this.process = spawn(
      process.env.VORRANG_BINARY,
      ["serve", "--dev", "--host", "127.0.0.1", "--data-dir", this.directory,
        "--emulator-config", process.env.VORRANG_ENTITIES, ...ports],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    // The interface goes on reading after the start, so that the broker never waits for a reader of its output.
    const lines = createInterface({ input: this.process.stdout });
    const watchdog = setTimeout(() => this.process.kill("SIGKILL"), READY_WITHIN_MS);
    await new Promise((resolve, reject) => {
      lines.on("line", (line) => {
        const [, name, port] = DOOR.exec(line) ?? [];
        if (name) this.ports[name] = Number(port);
        if (line === READY_LINE) resolve();
      });
      lines.on("close", () => reject(new Error("the broker did not get ready")));
    }).finally(() => clearTimeout(watchdog));
  }

  /** Ends the process as a power failure would: at once, without a word. */
  async kill() {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      this.process.kill("SIGKILL");
      await once(this.process, "exit");
    }
  }

  async restart() {
    await this.kill();
    await this.start();
  }

  /** Kills the process and forgets its data. */
  async remove() {
    await this.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

module.exports = { Broker };
