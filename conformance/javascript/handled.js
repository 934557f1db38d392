// Collects what a streaming receiver handles and lets a test wait for a number of different bodies.
"use strict";

class Handled {
  constructor() {
    this.bodies = [];
    this.different = new Set();
    this.waiting = [];
  }

  add(body) {
    this.bodies.push(body);
    this.different.add(body);
    this.waiting = this.waiting.filter(({ count, done }) => {
      const reached = this.different.size >= count;
      if (reached) done();
      return !reached;
    });
  }

  /** Resolves once `count` different bodies were handled. */
  atLeast(count) {
    return new Promise((done) => {
      if (this.different.size >= count) done();
      else this.waiting.push({ count, done });
    });
  }
}

module.exports = { Handled };
