// An editor of YAML with syntax colors.

import { element, fill } from "./drawing/dom.js";

const KEY = /^(\s*(?:- +)*)((?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#'"[\]{},&*!|>%@`-][^:#]*?|-[^\s:#][^:#]*?)\s*)(:)(?=\s|$)/;
const SCALAR = /^(?:true|false|null|~|[-+]?(?:\d[\d_]*)(?:\.\d+)?(?:[eE][-+]?\d+)?)$/;
const PIECES = /("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')|(\s#.*$|^#.*$)|([[\]{},])|([^"'[\]{},\s]+)|(\s+)/g;
const LONGEST = 200000;
const LONGEST_LINE = 2000;

// The pieces of a line, each with the name of what it is: `[["key", "spec"], ["", ": "], ...]`.
export function piecesOf(line) {
  if (/^\s*#/.test(line) || line.length > LONGEST_LINE) {
    return [[line.length > LONGEST_LINE ? "" : "comment", line]];
  }
  if (/^(---|\.\.\.)(\s|$)/.test(line)) {
    return [["mark", line]];
  }
  const found = [], key = KEY.exec(line);
  let rest = line;
  if (key) {
    found.push(["mark", key[1]], ["key", key[2]], ["mark", key[3]]);
    rest = line.slice(key[0].length);
  } else {
    const dashes = /^\s*(?:- +|-$)+/.exec(line);
    if (dashes) {
      found.push(["mark", dashes[0]]);
      rest = line.slice(dashes[0].length);
    }
  }
  for (const [, text, comment, mark, word, space] of rest.matchAll(PIECES)) {
    if (text !== undefined) {
      found.push(["text", text]);
    } else if (comment !== undefined) {
      found.push(["comment", comment]);
    } else if (mark !== undefined) {
      found.push(["mark", mark]);
    } else {
      found.push([word !== undefined && SCALAR.test(word) ? "number" : "", word ?? space]);
    }
  }
  // An odd quote begins no text; it is shown as it is.
  const total = found.reduce((length, [, piece]) => length + piece.length, 0);
  return total === line.length ? found.filter(([, piece]) => piece) : [["", line]];
}

// Elements for a text; a very long one is left without colours.
export function coloured(text) {
  if (text.length > LONGEST) {
    return [text];
  }
  return text.split("\n").flatMap((line, place) => {
    const made = piecesOf(line).map(([name, piece]) => (name ? element("span", { className: `y-${name}` }, piece) : piece));
    return place ? ["\n", ...made] : made;
  });
}

// The YAML of an object without the field by which servers keep account of who owns what.
export function withoutManagedFields(text) {
  const kept = [];
  let isInside = false;
  for (const line of text.split("\n")) {
    if (line === "  managedFields:") {
      isInside = true;
    } else if (!isInside || !/^(?: {2}- | {3})/.test(line)) {
      isInside = false;
      kept.push(line);
    }
  }
  return kept.join("\n");
}

// The YAML of an object without what only one that is there has, so that another can be made of it.
export function withoutIdentity(text) {
  return text.replace(/^ {2}(?:creationTimestamp|deletionGracePeriodSeconds|deletionTimestamp|generation|resourceVersion|uid): .*\n/gm, "");
}

const INDENT = "  ";

export class Editor {
  // `onsave` is called for Ctrl+Enter and Ctrl+S, `onchange` when the text is another.
  constructor({ label, onsave = null, onchange = () => {}, rows = 0, isReadOnly = false }) {
    this.area = element("textarea", { className: "code", spellcheck: false, "aria-label": label, readOnly: isReadOnly });
    this.area.setAttribute("autocapitalize", "off");
    this.area.setAttribute("autocomplete", "off");
    this.area.wrap = "off";
    if (rows) {
      this.area.rows = rows;
    }
    this.colours = element("pre", { className: "code", "aria-hidden": "true" });
    this.element = element("div", { className: rows ? "editor small" : "editor" }, this.colours, this.area);
    this.onsave = onsave;
    this.leaves = false;
    this.area.addEventListener("input", () => {
      this.paint();
      onchange(this.area.value);
    });
    this.area.addEventListener("scroll", () => this.follow());
    this.area.addEventListener("keydown", (event) => this.pressed(event));
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.area.scrollTop = 0;
    this.paint();
  }

  // Replaces the text by a newer version, and keeps the position of the user.
  renew(text) {
    const { scrollTop, scrollLeft, selectionStart, selectionEnd } = this.area;
    this.area.value = text;
    this.area.setSelectionRange(selectionStart, selectionEnd);
    Object.assign(this.area, { scrollTop, scrollLeft });
    this.paint();
  }

  paint() {
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        fill(this.colours, ...coloured(this.area.value), "\n");
        this.follow();
      });
    }
  }

  follow() {
    this.colours.scrollTop = this.area.scrollTop;
    this.colours.scrollLeft = this.area.scrollLeft;
  }

  // Tab indents; after Escape it goes on to the next field, as everywhere.
  pressed(event) {
    if (this.onsave && (event.ctrlKey || event.metaKey) && (event.key === "Enter" || event.key === "s")) {
      event.preventDefault();
      this.onsave();
    } else if (event.key === "Tab" && !event.shiftKey && !this.leaves && !this.area.readOnly) {
      event.preventDefault();
      this.area.setRangeText(INDENT, this.area.selectionStart, this.area.selectionEnd, "end");
      this.area.dispatchEvent(new Event("input"));
    }
    this.leaves = event.key === "Escape";
  }
}
