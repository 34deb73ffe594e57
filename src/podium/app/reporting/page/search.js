// Search by a part of a name: all words that are typed have to be in it.
import { element, fill } from "./dom.js";

const MOST = 12;

export class Search {
  // `names` gives what there is as `[kind, name]`, and is asked once somebody searches.
  constructor(what, names, onselect) {
    this.names = names;
    this.onselect = onselect;
    this.input = element("input", { type: "search", placeholder: `Search ${what}  /`, autocomplete: "off" });
    this.input.setAttribute("aria-label", `Search ${what}`);
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

  lowered() {
    this.known = this.known ?? this.names().map(([kind, name]) => [kind, name, name.toLowerCase()]);
    return this.known;
  }

  find() {
    const wanted = this.input.value.trim().toLowerCase().split(/\s+/).filter((part) => part);
    const found = [];
    for (const [kind, name, lower] of wanted.length ? this.lowered() : []) {
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
    this.onselect(kind, name);
  }
}
