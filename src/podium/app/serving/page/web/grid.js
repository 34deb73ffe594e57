// A table of which rows come, change and go: each row stays the same element as long as it is there, so that whoever is
// about to click on one does.
import { element, fill } from "./drawing/dom.js";
import { NATURAL, number } from "./drawing/formats.js";

const MOST = 500;

export class Grid {
  // `onopen` is called with the key of the row that somebody chooses.
  constructor({ label, onopen = null, most = MOST }) {
    this.head = element("thead", {});
    this.body = element("tbody", {});
    this.rest = element("p", { className: "rest" });
    this.table = element("table", { className: "grid", "aria-label": label }, this.head, this.body);
    this.element = element("div", { className: "grid-box" }, this.table, this.rest);
    this.made = new Map();
    this.sortedBy = -1;
    this.isReversed = false;
    this.chosen = "";
    this.most = most;
    this.onopen = onopen;
    if (onopen) {
      this.body.addEventListener("click", (event) => this.open(event.target));
      this.body.addEventListener("keydown", (event) => {
        if (event.key === "Enter") {
          this.open(event.target);
        }
      });
    }
  }

  open(target) {
    const row = target.closest("tr");
    if (row) {
      this.onopen(row.dataset.key);
    }
  }

  choose(key) {
    this.made.get(this.chosen)?.row.classList.remove("chosen");
    this.chosen = key;
    this.made.get(key)?.row.classList.add("chosen");
  }

  // Shows rows `{key, cells}` under headings. A cell is a text or number, or `[text, class]`.
  show(headings, rows) {
    this.last = [headings, rows];
    this.showHead(headings);
    const sorted = this.sortedBy < 0 ? rows : [...rows].sort((left, right) => this.compare(left, right));
    const shown = sorted.slice(0, this.most);
    const kept = new Set(shown.map((row) => row.key));
    for (const [key, { row }] of this.made) {
      if (!kept.has(key)) {
        row.remove();
        this.made.delete(key);
      }
    }
    let before = null;
    for (const row of shown) {
      const made = this.rowOf(row);
      const next = before ? before.nextSibling : this.body.firstChild;
      if (next !== made) {
        this.body.insertBefore(made, next);
      }
      before = made;
    }
    this.rest.textContent = rows.length > shown.length ? `and ${number(rows.length - shown.length)} more` : "";
  }

  showHead(headings) {
    const told = JSON.stringify([headings, this.sortedBy, this.isReversed]);
    if (told === this.toldHead) {
      return;
    }
    this.toldHead = told;
    const cells = headings.map((heading, place) => {
      const order = place === this.sortedBy ? (this.isReversed ? "descending" : "ascending") : "none";
      const sort = element("button", { type: "button", className: "sort", onclick: () => this.sort(place) }, heading);
      return element("th", { scope: "col", "aria-sort": order }, sort);
    });
    fill(this.head, element("tr", {}, ...cells));
  }

  sort(place) {
    this.isReversed = place === this.sortedBy && !this.isReversed;
    this.sortedBy = place;
    this.show(...this.last);
  }

  compare(left, right) {
    const [first, second] = [left, right].map((row) => textOf(row.cells[this.sortedBy]));
    const found = NATURAL.compare(first, second) || NATURAL.compare(left.key, right.key);
    return this.isReversed ? -found : found;
  }

  rowOf({ key, cells }) {
    const told = JSON.stringify(cells);
    let made = this.made.get(key);
    if (!made) {
      const row = element("tr", { className: key === this.chosen ? "chosen" : "" });
      row.dataset.key = key;
      if (this.onopen) {
        row.tabIndex = 0;
      }
      made = { row, told: "" };
      this.made.set(key, made);
    }
    if (made.told !== told) {
      made.told = told;
      fill(made.row, ...cells.map(cellOf));
    }
    return made.row;
  }
}

function textOf(cell) {
  return String((Array.isArray(cell) ? cell[0] : cell) ?? "");
}

function cellOf(cell) {
  const [text, name] = Array.isArray(cell) ? cell : [cell, ""];
  const isNumber = typeof text === "number";
  return element("td", { className: `${name}${isNumber ? " number" : ""}`.trim() }, isNumber ? number(text) : String(text ?? ""));
}
