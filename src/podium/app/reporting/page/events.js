// The events in words: a list in which only what is in sight is made.

import { KINDS } from "./colours.js";
import { detail } from "./descriptions.js";
import { choice, element, fill } from "./dom.js";
import { number } from "./formats.js";

const ROW = 24;
const OVERSCAN = 6;

// What stands behind the pod: its node, who did it, and why.
function explanation(story, event) {
  const pod = story.events.pod[event], node = story.events.node[event], text = detail(story, event);
  return pod >= 0 && node >= 0 ? `on ${story.nodeName(node)}${text}` : text.replace(/^: /, "");
}

export class EventList {
  constructor(scene) {
    this.scene = scene;
    this.kind = "";
    // Of several runs the last is the one that was asked for.
    this.show(scene.stories.length - 1);
    this.count = element("span", { className: "faint" });
    this.list = element("div", { className: "rows", role: "group" });
    this.box = element("div", { className: "events-box", role: "region", tabIndex: 0, onscroll: () => this.draw() }, this.list);
    this.box.setAttribute("aria-label", "Events");
    const kinds = [["", "all"], ...KINDS.map(([name, text]) => [name, text])];
    const filter = choice("kind", kinds, "", (value) => {
      this.kind = value;
      this.choose();
    });
    const runs = scene.stories.map((story, at) => [String(at), story.name]);
    const pick = runs.length < 2 ? null : choice("run", runs, String(this.place), (value) => {
      this.show(Number(value));
      this.choose();
    });
    this.element = element("section", { className: "events" },
      element("header", {}, element("h2", {}, "Events"), pick, filter, this.count), this.box);
    this.choose();
    scene.on((changed) => {
      if (changed.has("selection")) {
        this.choose();
      }
      if (changed.has("moments")) {
        this.follow();
      }
    });
  }

  // Lists the events of one of the runs.
  show(place) {
    this.place = place;
    this.story = this.scene.stories[place];
  }

  // The events that are shown: those of the kind that is chosen, about what is selected.
  choose() {
    const { story, scene } = this, lit = story.lit(scene.selection), found = story.find(scene.selection);
    const kind = KINDS.findIndex(([name]) => name === this.kind);
    this.shown = [];
    for (let event = 0; event < story.eventCount; event += 1) {
      const pod = story.events.pod[event], about = found && found.node >= 0 && story.events.node[event] === found.node;
      if ((kind < 0 || story.kind(event) === kind) && (!lit || about || (pod >= 0 && lit[pod]))) {
        this.shown.push(event);
      }
    }
    this.count.textContent = `${number(this.shown.length)} of ${number(story.eventCount)}`;
    this.list.style.height = `${Math.min(this.shown.length * ROW, 8_000_000)}px`;
    this.follow();
  }

  // Scrolls to where time stands.
  follow() {
    const moment = this.scene.moments[this.place];
    let place = this.shown.findLastIndex((event) => event <= moment);
    place = Math.max(place, 0);
    const top = place * ROW, { scrollTop, clientHeight } = this.box;
    if (clientHeight && (top < scrollTop || top + ROW > scrollTop + clientHeight)) {
      this.box.scrollTop = Math.max(top - clientHeight / 2, 0);
    }
    this.draw();
  }

  draw() {
    const first = Math.max(Math.floor(this.box.scrollTop / ROW) - OVERSCAN, 0);
    const last = Math.min(first + Math.ceil((this.box.clientHeight || 240) / ROW) + 2 * OVERSCAN, this.shown.length);
    const rows = [];
    for (let place = first; place < last; place += 1) {
      rows.push(this.row(this.shown[place], place));
    }
    fill(this.list, ...rows);
  }

  row(event, place) {
    const { story } = this, pod = story.events.pod[event], node = story.events.node[event];
    const made = element("button", { type: "button", className: `row ${KINDS[story.kind(event)][0]}` },
      element("span", { className: "time" }, story.when(story.times[event], false)),
      element("span", { className: "reason" }, story.reason(event)),
      element("span", { className: "who" }, pod < 0 ? story.nodeName(node) : story.podName(pod)),
      element("span", { className: "why" }, explanation(story, event)));
    made.style.top = `${place * ROW}px`;
    made.title = `${story.when(story.times[event])} ${made.textContent}`;
    made.classList.toggle("past", event > this.scene.moments[this.place]);
    made.classList.toggle("now", event === this.scene.moments[this.place]);
    made.addEventListener("click", () => {
      this.scene.goTo(this.place, event);
      if (pod >= 0 && !this.scene.selection) {
        this.scene.select("pod", story.podName(pod));
      }
    });
    return made;
  }
}
