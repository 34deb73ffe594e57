// Tables and lists of an answer, and the search by parts of a name.

import { element, fill } from "./dom.js";
import { number } from "./formats.js";

const MOST_FOUND = 12;

export class Search {
  // `names` returns all `[kind, name]`, and is called when the user searches.
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
        if (found.length > MOST_FOUND) {
          break;
        }
      }
    }
    const rows = found.slice(0, MOST_FOUND).map(([kind, name]) => element("li", {},
      element("button", { type: "button", onclick: () => this.choose(kind, name) }, element("span", { className: "faint" }, kind), ` ${name}`)));
    if (found.length > MOST_FOUND) {
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

const MOST = 200;
const SUBJECTS = ["node", "pod", "workload"];

// The cell of a heading; a column without one has none to read out.
export function headingOf(heading, properties = {}) {
  return heading ? element("th", { scope: "col", ...properties }, heading) : element("td", properties);
}

// A table; a click on a row selects what it is about.
export function tableOf(table, onselect) {
  const isNumber = (column) => table.rows.length > 0 && table.rows.every((row) => typeof row[column] !== "string" || row[column] === "");
  const head = table.headings.some((heading) => heading)
    ? element("thead", {}, element("tr", {}, ...table.headings.map((heading, column) =>
        headingOf(heading, { className: isNumber(column) && table.rows.some((row) => typeof row[column] === "number") ? "number" : "" }, heading))))
    : null;
  const body = element("tbody");
  const add = (from, to) => {
    table.rows.slice(from, to).forEach((row, place) => body.append(rowOf(row, table.subjects[from + place], onselect)));
  };
  add(0, MOST);
  const section = element("section", { className: "table" }, element("h2", {}, table.title),
    table.note ? element("p", { className: "faint" }, table.note) : null,
    element("div", { className: "scroll" }, element("table", {}, head, body)));
  if (table.rows.length > MOST) {
    const more = element("button", { type: "button" }, `Show all ${number(table.rows.length)}`);
    more.addEventListener("click", () => {
      add(MOST, table.rows.length);
      more.remove();
    });
    section.append(more);
  }
  return section;
}

function rowOf(row, subject, onselect) {
  const cells = row.map((cell) => {
    const is_number = typeof cell === "number";
    return element("td", { className: is_number ? "number" : "" }, cell === null ? "" : is_number ? number(cell) : cell);
  });
  const made = element("tr", {}, ...cells);
  const [kind, name] = splitSubject(subject);
  if (kind && onselect) {
    const open = element("button", { type: "button", className: "link" }, ...made.cells[0].childNodes);
    made.cells[0].replaceChildren(open);
    made.classList.add("subject");
    made.addEventListener("click", () => onselect(kind, name));
  }
  return made;
}

// "node a" is ["node", "a"]; what begins with no kind is ["", ""].
function splitSubject(subject) {
  const space = subject ? subject.indexOf(" ") : -1, kind = space < 0 ? "" : subject.slice(0, space);
  return SUBJECTS.includes(kind) ? [kind, subject.slice(space + 1)] : ["", ""];
}

// Lines under a title; null for none.
export function listOf(title, lines, note) {
  if (!lines.length) {
    return null;
  }
  return element("section", { className: "basis" }, element("h2", {}, title), note ? element("p", { className: "faint" }, note) : null,
    element("ul", {}, ...lines.map((line) => element("li", {}, line))));
}
