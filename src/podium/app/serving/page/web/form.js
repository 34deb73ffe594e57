// The forms of questions: fields, progress, and messages about the result.

import { button, element, fill } from "./drawing/dom.js";
import { percent } from "./drawing/formats.js";
import { Refusal, lines } from "./api.js";
import { Editor } from "./editor.js";

const MOST = 20;

export class Messages {
  constructor() {
    this.element = element("div", { className: "messages", role: "status", "aria-live": "polite" });
  }

  clear() {
    fill(this.element);
  }

  good(text, warnings = []) {
    fill(this.element, line("good", text), ...warnings.slice(0, MOST).map((warning) => line("warn", warning)));
  }

  note(text, ...more) {
    fill(this.element, line("warn", text, ...more));
  }

  // What was refused, cause by cause.
  bad(error, what = "") {
    const said = what ? `${what}: ${error.message}` : error.message;
    const causes = error instanceof Refusal && error.causes.length > 1 ? error.causes : [];
    fill(this.element, line("bad", causes.length ? said.split(": [")[0] : said),
      ...causes.slice(0, MOST).map((cause) => line("bad", `${cause.field ? `${cause.field}: ` : ""}${cause.message}`)));
  }
}

function line(kind, text, ...more) {
  return element("p", { className: `message ${kind}` }, text, ...more);
}

export class Asking {
  constructor(server) {
    this.server = server;
    this.bar = element("progress", { max: 1, value: 0 });
    this.status = element("span", {});
    this.element = element("div", { className: "progress", role: "status" }, this.bar, this.status,
      button("Stop", "Ask no longer", () => this.stop()));
    this.element.hidden = true;
  }

  stop() {
    this.stopping?.abort();
  }

  // The answer to a question; null for one that was stopped, or overtaken by another.
  async ask(question, values) {
    this.stop();
    const stopping = (this.stopping = new AbortController());
    this.show(0, "asking");
    this.element.hidden = false;
    try {
      const body = JSON.stringify({ question, values });
      const reply = await this.server.send("POST", "/ui/ask", { body, signal: stopping.signal });
      for await (const events of lines(reply)) {
        const event = events.at(-1);
        if (event.error !== undefined) {
          throw new Refusal(0, "", event.error);
        }
        if (event.answer) {
          return event.answer;
        }
        this.show(event.progress, event.what);
      }
      throw new Refusal(0, "", "the server has ended before there was an answer");
    } catch (error) {
      if (stopping.signal.aborted) {
        return null;
      }
      throw error;
    } finally {
      if (this.stopping === stopping) {
        this.element.hidden = true;
      }
    }
  }

  show(share, what) {
    this.bar.value = share;
    fill(this.status, `${what}, ${percent(share)}`);
  }
}

let count = 0;

export class Form {
  // `suggest` gives what may be meant in a field: `suggest("nodes")` are names.
  // `rest` are fields that are seldom needed.
  constructor(fields, suggest, onsubmit, rest = []) {
    this.suggest = suggest;
    this.inputs = new Map();
    this.lists = [];
    this.submit = element("button", { type: "submit", className: "primary" }, "Ask");
    this.element = element("form", { className: "form" }, ...fields.map((field) => this.rowOf(field)),
      rest.length ? element("details", {}, element("summary", {}, "How it is played"), ...rest.map((field) => this.rowOf(field))) : null,
      element("div", { className: "submit" }, this.submit));
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      onsubmit(this.values);
    });
    this.element.addEventListener("focusin", () => this.fillLists());
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        onsubmit(this.values);
      }
    });
  }

  get values() {
    return Object.fromEntries([...this.inputs].map(([name, input]) => [name, input.get()]));
  }

  set(values) {
    for (const [name, value] of Object.entries(values)) {
      this.inputs.get(name)?.set(value);
    }
  }

  // Empties all fields.
  reset() {
    this.inputs.forEach((input) => input.set(""));
  }

  rowOf(field) {
    count += 1;
    const id = `field-${count}`, input = this.inputOf(field, id);
    this.inputs.set(field.name, input);
    const label = element("label", { for: id }, field.title, field.required ? element("em", {}, " needed") : null);
    const hint = field.hint ? element("small", {}, field.hint) : null;
    const isFlag = field.kind === "flag";
    return element("div", { className: `field ${field.kind}` }, ...(isFlag ? [input.element, label] : [label, input.element]), hint);
  }

  inputOf(field, id) {
    if (field.kind === "flag") {
      const box = element("input", { type: "checkbox", id });
      return { element: box, get: () => box.checked, set: (value) => (box.checked = Boolean(value)) };
    }
    if (field.kind === "yaml") {
      const editor = new Editor({ label: field.title, rows: 12 });
      editor.area.id = id;
      return { element: editor.element, get: () => editor.text, set: (value) => (editor.text = value) };
    }
    if (field.kind === "choice") {
      const box = element("select", { id }, ...["", ...field.choices].map((word) => element("option", { value: word }, word)));
      return { element: box, get: () => box.value, set: (value) => (box.value = value) };
    }
    const isLong = field.kind === "lines";
    const box = element(isLong ? "textarea" : "input", { id, placeholder: field.example, spellcheck: false });
    box.setAttribute("autocomplete", "off");
    if (isLong) {
      box.rows = 4;
    } else if (field.kind === "whole") {
      box.inputMode = "numeric";
    }
    const list = field.suggests && !isLong ? this.listFor(field, box, id) : null;
    const made = list ? element("span", { className: "with-list" }, box, list) : box;
    return { element: made, get: () => box.value, set: (value) => (box.value = value) };
  }

  // What is suggested; where several names go into a field, behind those that stand there.
  listFor(field, box, id) {
    const list = element("datalist", { id: `${id}-list` });
    box.setAttribute("list", list.id);
    this.lists.push({ field, box, list });
    if (field.kind === "names") {
      box.addEventListener("input", () => this.fillLists());
    }
    return list;
  }

  fillLists() {
    for (const { field, box, list } of this.lists) {
      const before = field.kind === "names" ? box.value.replace(/[^\s,]*$/, "") : "";
      const names = this.suggest(field.suggests).slice(0, 500);
      list.replaceChildren(...names.map((name) => element("option", { value: before + name })));
    }
  }
}
