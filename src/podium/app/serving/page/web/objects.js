// The objects of the cluster, kind by kind, in the server's tables.

import { button, element, fill } from "./drawing/dom.js";
import { NATURAL, ageText, number } from "./drawing/formats.js";
import { Follower, TABLE, pathOf } from "./api.js";
import { Messages } from "./form.js";
import { ObjectPanel } from "./object_panel.js";
import { chooseFiles, exported, importObjects, objectsIn, offer, resultText } from "./state.js";

const MOST = 500;

export class Grid {
  // `onopen` is called with the key of the row that the user selects.
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
    const sorted = this.sortedBy < 0 ? rows : this.sorted(rows);
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
    const shown = JSON.stringify([headings, this.sortedBy, this.isReversed]);
    if (shown === this.shownHead) {
      return;
    }
    this.shownHead = shown;
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

  sorted(rows) {
    const sign = this.isReversed ? -1 : 1;
    return rows.map((row) => ({ row, text: textOf(row.cells[this.sortedBy]) }))
      .sort((left, right) => sign * (NATURAL.compare(left.text, right.text) || NATURAL.compare(left.row.key, right.row.key)))
      .map(({ row }) => row);
  }

  rowOf({ key, cells }) {
    const shown = JSON.stringify(cells);
    let made = this.made.get(key);
    if (!made) {
      const row = element("tr", { className: key === this.chosen ? "chosen" : "" });
      row.dataset.key = key;
      if (this.onopen) {
        row.tabIndex = 0;
      }
      made = { row, shown: "" };
      this.made.set(key, made);
    }
    if (made.shown !== shown) {
      made.shown = shown;
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

const PAINT_EACH = 250;
const PAGE_SIZE = 500;
const AGE = "Age";
const MANIFESTS = ".yaml,.yml,.json";
export class ObjectsTab {
  constructor(page) {
    this.page = page;
    this.kindBox = element("select", { "aria-label": "Kind", onchange: () => this.choose() });
    this.namespaceBox = element("input", { type: "search", placeholder: "all namespaces", "aria-label": "Namespace", oninput: () => this.filter() });
    this.nameBox = element("input", { type: "search", placeholder: "name contains", "aria-label": "Name contains", oninput: () => this.filter() });
    this.wideBox = element("input", { type: "checkbox", checked: true, onchange: () => this.filter() });
    this.newButton = button("New", "Make an object", () => this.panel.make(this.kind));
    this.undoButton = button("Undo", "", () => this.tell(() => this.undo()));
    this.state = element("span", { className: "state", role: "status" });
    this.messages = new Messages();
    page.changes.onchange = () => this.showUndo();
    this.showUndo();
    const files = [
      button("Upload", "Show the manifests of files in the editor, to create their objects", () => this.tell(() => this.upload())),
      button("Import", "Create all objects of a file that are not there", () => this.tell(() => this.import())),
    ];
    const save = button("Export", "Save all objects but Secrets in a file, for Import and podium up -f", () => this.tell(() => this.export()));
    this.grid = new Grid({ label: "Objects", onopen: (key) => this.open(key) });
    this.panel = new ObjectPanel(page, () => this.closed());
    this.element = element("div", { className: "split" },
      element("div", { className: "list" },
        element("div", { className: "toolbar" }, this.kindBox, this.namespaceBox, this.nameBox,
          element("label", { className: "choice", title: "All columns, as with kubectl get -o wide" }, this.wideBox, "wide"),
          ...(page.isReadOnly ? [save] : [this.newButton, ...files, save, this.undoButton]), this.state),
        this.messages.element, this.grid.element),
      this.panel.element);
    this.kind = null;
    this.follower = null;
    this.columns = [];
  }

  // Shows `kind/namespace/name`, or what was shown before.
  async show(parts) {
    const kinds = await this.page.kinds();
    if (!this.kindBox.length) {
      fill(this.kindBox, ...kinds.map((kind) => element("option", { value: idOf(kind) }, kind.label)));
    }
    const [id, namespace, name] = parts;
    const kind = kinds.find((each) => idOf(each) === id) || this.kind || kinds[0];
    if (kind !== this.kind) {
      this.follow(kind);
    }
    this.follower.start();
    this.ticking = this.ticking || setInterval(() => this.paintSoon(), 5000);
    if (name && !this.isShown(kind, namespace, name)) {
      await this.panel.open(kind, namespace === "-" ? "" : namespace, name);
    }
  }

  isShown(kind, namespace, name) {
    const { ref } = this.panel;
    return ref && idOf(ref.kind) === idOf(kind) && ref.name === name && ref.namespace === (namespace === "-" ? "" : namespace);
  }

  hide() {
    this.follower?.stop();
    clearInterval(this.ticking);
    this.ticking = 0;
  }

  // The page is hidden, or visible again.
  pause() {
    this.hide();
  }

  resume() {
    this.show([]);
  }

  choose() {
    this.page.go("objects", this.kindBox.value);
  }

  follow(kind) {
    this.follower?.stop();
    this.kind = kind;
    this.kindBox.value = idOf(kind);
    this.namespaceBox.hidden = !kind.namespaced;
    this.newButton.hidden = !kind.verbs.includes("create");
    this.columns = [];
    this.grid.sortedBy = -1;
    const follower = new Follower(this.page.server, pathOf(kind), {
      accept: TABLE,
      read: rowsOf,
      // What the columns are is said once, by the first table, though there is no row in it.
      look: (table) => follower === this.follower && table.columnDefinitions && (this.columns = table.columnDefinitions),
      onChanges: (changes) => follower === this.follower && this.changed(changes),
      onState: (state) => follower === this.follower && this.report(state),
      limit: PAGE_SIZE,
    });
    this.follower = follower;
    this.paint();
  }

  report(state) {
    this.state.textContent = state === "live" ? "" : state;
    this.state.classList.toggle("bad", state !== "live" && state !== "connecting" && !state.endsWith(" read"));
  }

  changed(changes) {
    const { ref } = this.panel;
    for (const { record, before } of changes) {
      const { name, namespace } = record || before;
      if (ref && idOf(ref.kind) === idOf(this.kind) && ref.name === name && ref.namespace === namespace) {
        if (record) {
          this.panel.changed(record.version);
        } else {
          this.panel.gone();
        }
      }
    }
    this.paintSoon();
  }

  paintSoon() {
    if (!this.timer) {
      this.timer = setTimeout(() => {
        this.timer = 0;
        this.paint();
      }, PAINT_EACH);
    }
  }

  filter() {
    this.paint();
  }

  paint() {
    const shown = this.columns.map((column, place) => ({ ...column, place }))
      .filter((column) => column.priority === 0 || this.wideBox.checked);
    const namespace = this.namespaceBox.value.trim(), part = this.nameBox.value.trim().toLowerCase();
    const now = this.page.now(), isNamespaced = this.kind.namespaced;
    const textIn = (row, { name, place }) => (name === AGE && row.created ? ageText(row.created, now) : row.cells[place]);
    const rows = [...this.follower.known.values()]
      .filter((row) => row.namespace.includes(isNamespaced ? namespace : "") && row.name.toLowerCase().includes(part))
      .sort((left, right) => compare(left.namespace, right.namespace) || compare(left.name, right.name))
      .map((row) => ({
        key: row.key,
        // Made for the rows that are shown, of which there may be few.
        get cells() {
          return [...(isNamespaced ? [row.namespace] : []), ...shown.map((column) => textIn(row, column))];
        },
      }));
    this.grid.show([...(isNamespaced ? ["Namespace"] : []), ...shown.map((column) => column.name)], rows);
  }

  showUndo() {
    const { last } = this.page.changes;
    this.undoButton.disabled = !last;
    this.undoButton.title = last ? `Undo: ${last}` : "This page has changed nothing yet";
  }

  // Does something, and says what came of it: a text, with warnings if it is a list.
  async tell(act) {
    this.messages.clear();
    try {
      const said = await act();
      if (said) {
        this.messages.good(...[said].flat(1));
      }
    } catch (error) {
      this.messages.bad(error);
    }
  }

  async undo() {
    return `Undone: ${await this.page.changes.undo()}`;
  }

  async upload() {
    const files = await chooseFiles(MANIFESTS);
    const texts = await Promise.all(files.map((file) => file.text()));
    this.panel.makeFrom(this.kind, files.map((file) => file.name).join(", "), texts.join("\n---\n"));
  }

  async export() {
    const { number: many, text } = await exported(this.page, (so) => this.messages.note(`${number(so)} objects read`));
    offer("cluster.json", text);
    return `${number(many)} objects exported, without Secrets`;
  }

  async import() {
    const { page } = this, files = await chooseFiles(MANIFESTS), objects = [];
    for (const file of files) {
      objects.push(...await objectsIn(page.server, await file.text()));
    }
    const report = (so) => this.messages.note(`${number(so)} of ${number(objects.length)} objects`);
    const naming = () => `import of ${files.map((file) => file.name).join(", ")}`;
    const result = await page.changes.together(naming, () => importObjects(page, objects, report));
    return resultText(result);
  }

  open(key) {
    const row = this.follower.known.get(key);
    if (row) {
      this.grid.choose(key);
      this.page.go("objects", idOf(this.kind), row.namespace || "-", row.name);
    }
  }

  closed() {
    this.grid.choose("");
    this.page.go("objects", idOf(this.kind));
  }
}

// The rows of a table that the server has made.
function rowsOf(table) {
  return (table.rows || []).map(({ cells, object: { metadata } }) => ({
    key: metadata.uid || `${metadata.namespace}/${metadata.name}`,
    version: metadata.resourceVersion,
    name: metadata.name,
    namespace: metadata.namespace || "",
    created: metadata.creationTimestamp,
    cells,
  }));
}

// How a kind is called in the page's address.
export function idOf(kind) {
  return kind.group ? `${kind.plural}.${kind.group}` : kind.plural;
}

function compare(left, right) {
  return left < right ? -1 : left > right ? 1 : 0;
}
