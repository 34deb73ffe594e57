// What came of something: what went well, what there is to know, and what is wrong, with the fields that are meant.
import { element, fill } from "./drawing/dom.js";
import { Refusal } from "./api.js";

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
