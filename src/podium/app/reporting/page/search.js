// Search: pods, workloads and nodes by a part of their names.
import { element, fill } from "./dom.js";

const MOST = 12;

export class Search {
  constructor(scene, onselect) {
    this.scene = scene;
    this.onselect = onselect;
    this.input = element("input", { type: "search", placeholder: "Search pods, workloads, nodes  /", autocomplete: "off" });
    this.input.setAttribute("aria-label", "Search pods, workloads and nodes");
    this.list = element("ul", { className: "found", hidden: true });
    this.element = element("div", { className: "search" }, this.input, this.list);
    this.input.addEventListener("input", () => this.find());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("focusout", (event) => {
      if (!this.element.contains(event.relatedTarget)) {
        this.list.hidden = true;
      }
    });
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  // What there is, by name, made when somebody searches.
  names() {
    if (!this.known) {
      const found = new Map();
      for (const story of this.scene.stories) {
        story.nodes.name.forEach((word) => found.set(`node ${story.words[word]}`, ["node", story.words[word]]));
        new Set(story.pods.workload).forEach((word) => {
          if (!story.word(word).startsWith("Pod ")) {
            found.set(`workload ${story.word(word)}`, ["workload", story.word(word)]);
          }
        });
        story.pods.name.forEach((word) => found.set(`pod ${story.words[word]}`, ["pod", story.words[word]]));
      }
      this.known = [...found.values()].map(([kind, name]) => [kind, name, name.toLowerCase()]);
    }
    return this.known;
  }

  find() {
    const wanted = this.input.value.trim().toLowerCase().split(/\s+/).filter((part) => part);
    const found = [];
    for (const [kind, name, lower] of wanted.length ? this.names() : []) {
      if (wanted.every((part) => lower.includes(part))) {
        found.push([kind, name]);
        if (found.length > MOST) {
          break;
        }
      }
    }
    const rows = found.slice(0, MOST).map(([kind, name]) => element("li", {},
      element("button", { type: "button", onclick: () => this.choose(kind, name) }, element("span", { className: "faint" }, kind), ` ${name}`)));
    if (found.length > MOST) {
      rows.push(element("li", { className: "faint" }, "and more"));
    }
    if (wanted.length && !found.length) {
      rows.push(element("li", { className: "faint" }, "nothing has such a name"));
    }
    fill(this.list, ...rows);
    this.list.hidden = !rows.length;
    return found;
  }

  key(event) {
    if (event.key === "Enter") {
      const [first] = this.find();
      if (first) {
        this.choose(...first);
      }
    } else if (event.key === "Escape") {
      this.input.value = "";
      this.list.hidden = true;
      this.input.blur();
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      this.list.querySelector("button")?.focus();
    }
    event.stopPropagation();
  }

  choose(kind, name) {
    this.list.hidden = true;
    this.scene.set({ selection: { kind, name } });
    this.onselect(kind, name);
  }
}
