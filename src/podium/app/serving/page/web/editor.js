// A text of YAML to write in, with colours behind what is written.
import { element, fill } from "./drawing/dom.js";
import { coloured } from "./yaml.js";

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

  // The same text as it is now elsewhere: whoever reads it goes on where they are.
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
