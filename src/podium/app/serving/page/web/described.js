// An object as `kubectl describe` has it: its conditions, the states of its containers, and its events.

import { element, fill } from "./drawing/dom.js";
import { ageText, clock } from "./drawing/formats.js";

export class Described {
  constructor(page) {
    this.page = page;
    this.element = element("div", { className: "described-object" });
    this.shown = "";
  }

  // Shows an object, or nothing for no kind.
  async show(kind, key) {
    const shown = (this.shown = kind ? `${kind} ${key}` : "");
    fill(this.element);
    if (!kind) {
      return;
    }
    try {
      const found = await this.page.server.json("GET", `/ui/object?${new URLSearchParams({ kind, name: key })}`);
      if (this.shown === shown) {
        fill(this.element, ...this.parts(found));
      }
    } catch (error) {
      // An object that is gone has nothing to say any more.
      if (this.shown === shown && error.code !== 404) {
        fill(this.element, element("p", { className: "failure" }, error.message));
      }
    }
  }

  parts({ status, events }) {
    const containers = [...(status.initContainerStatuses || []), ...(status.containerStatuses || [])]
      .flatMap(({ name, state = {} }) => Object.entries(state).map(([word, more]) => ({ name, state: word, ...more })));
    const now = this.page.now();
    const when = (at) => (at ? `${clock(at)} (${ageText(at, now)} ago)` : "");
    return [
      ...listed("Conditions", (status.conditions || []).map(({ type, status, reason, message, lastTransitionTime }) =>
        [`${type} ${status}`, [reason, message].filter((text) => text).join(": "), when(lastTransitionTime)])),
      ...listed("Containers", containers.map(({ name, state, reason, message }) => [name, [state, reason, message].filter((text) => text).join(": "), ""])),
      ...listed("Events", events.map(({ reason, message, count, at }) => [reason, `${message}${count > 1 ? ` (${count} times)` : ""}`, when(at)])),
    ];
  }
}

// A list of `[name, text, time]` under a title; nothing for none.
function listed(title, rows) {
  return rows.length ? [element("h3", {}, title), element("ul", {}, ...rows.map(([name, text, time]) =>
    element("li", {}, element("strong", {}, name), text ? ` ${text}` : "", time ? element("span", { className: "faint" }, ` ${time}`) : "")))] : [];
}
