// What would happen: the questions of `podium plan` about the cluster as it is. Nothing is changed by asking.
import { button, element, fill } from "./drawing/dom.js";
import { duration, number } from "./drawing/formats.js";
import { Asking } from "./asking.js";
import { Form } from "./form.js";
import { Messages } from "./messages.js";

const MOST = 300;
const COLUMNS = [
  ["Workload", (impact) => impact.workload],
  ["Before", (impact) => impact.readyBefore],
  ["Lowest", (impact) => impact.lowestReady],
  ["After", (impact) => impact.readyAfter],
  ["Wanted", (impact) => impact.wanted],
  ["Short for", (impact) => (impact.shortSeconds ? duration(impact.shortSeconds) : "")],
  ["Waits", (impact) => (impact.pendingSeconds ? duration(impact.pendingSeconds) : "")],
  ["Disrupted", (impact) => Object.entries(impact.disruptions).map(([cause, count]) => `${count} by ${cause}`).join(", ")],
  ["Why not back", (impact) => impact.why || ""],
];

export class PlansTab {
  constructor(page) {
    this.page = page;
    this.asking = new Asking(page.server);
    this.messages = new Messages();
    this.result = element("div", { className: "answer" });
    this.aside = element("aside", {});
    this.element = element("div", { className: "asked" }, this.aside, element("div", {}, this.asking.element, this.messages.element, this.result));
    this.menu = element("nav", { className: "questions", "aria-label": "Questions" },
      ...page.about.plans.map((form) => {
        const made = button(form.title, `podium plan ${form.name}`, () => page.go("plans", form.name));
        made.dataset.question = form.name;
        return made;
      }));
    this.forms = new Map();
    this.answers = new Map();
  }

  // Shows a question's form, and the answer that it has had last.
  show([name, values]) {
    const form = this.page.about.plans.find((each) => each.name === name) || this.current || this.page.about.plans[0];
    this.current = form;
    if (!this.forms.has(form.name)) {
      const suggest = (what) => this.page.suggest(what);
      this.forms.set(form.name, new Form(form.fields, suggest, (given) => this.ask(form, given), this.page.about.played));
    }
    for (const each of this.menu.children) {
      each.setAttribute("aria-current", each.dataset.question === form.name ? "true" : "false");
    }
    if (values) {
      this.forms.get(form.name).set(JSON.parse(values));
    }
    fill(this.aside, this.menu, element("p", { className: "hint" }, form.told), this.forms.get(form.name).element);
    this.messages.clear();
    this.paint(this.answers.get(form.name));
  }

  hide() {}

  async ask(form, values) {
    this.messages.clear();
    try {
      const answer = await this.asking.ask(form.name, values);
      if (answer) {
        this.answers.set(form.name, answer);
        if (this.current === form) {
          this.paint(answer);
        }
      }
    } catch (error) {
      this.answers.delete(form.name);
      fill(this.result);
      this.messages.bad(error);
    }
  }

  paint(answer) {
    if (!answer) {
      fill(this.result, element("p", { className: "hint" }, "The answer is played on the cluster as it is at that moment; nothing is changed by asking."));
      return;
    }
    const { plan, sections } = answer;
    fill(this.result,
      element("h2", { className: "headline" }, plan.headline),
      plan.findings.length ? element("ul", { className: "findings" }, ...plan.findings.map(finding)) : null,
      ...sections.filter((section) => section.rows.length).map(sectionOf),
      impactTable(plan.impact),
      nodeTable(plan.nodes),
      basis(plan.restsOn),
      element("details", {}, element("summary", {}, "As in the terminal"), element("pre", {}, answer.text)),
      answer.scenario ? element("details", {}, element("summary", {}, "The scenario that was played"),
        element("pre", {}, JSON.stringify(answer.scenario, null, 2))) : null);
  }
}

function finding({ code, message }) {
  return element("li", {}, element("code", {}, code), ` ${message}`);
}

function table(label, headings, rows) {
  const shown = rows.slice(0, MOST).map((row) => element("tr", {}, ...row.map((cell) =>
    element("td", { className: typeof cell === "number" ? "number" : "" }, typeof cell === "number" ? number(cell) : String(cell)))));
  return element("div", { className: "wide" }, element("table", { className: "grid", "aria-label": label },
    headings.length ? element("thead", {}, element("tr", {}, ...headings.map((heading, place) => element("th", { scope: "col", className: isNumber(rows, place) ? "number" : "" }, heading)))) : null,
    element("tbody", {}, ...shown)), rows.length > MOST ? element("p", { className: "rest" }, `and ${number(rows.length - MOST)} more`) : null);
}

function isNumber(rows, place) {
  return rows.length > 0 && typeof rows[0][place] === "number";
}

function part(title, told, ...children) {
  return element("section", { className: "part" }, element("h3", {}, title, told ? element("small", {}, ` ${told}`) : null), ...children);
}

function sectionOf(section) {
  return part(section.title, section.rest, table(section.title, section.headings, section.rows));
}

function impactTable(impact) {
  if (!impact.length) {
    return part("Impact", "", element("p", {}, "None: every workload fares as it would anyway."));
  }
  const kept = COLUMNS.filter(([, of], place) => place < 5 || impact.some((each) => of(each) !== ""));
  return part("Impact", "ready pods by workload, and what they go through",
    table("Impact", kept.map(([heading]) => heading), impact.map((each) => kept.map(([, of]) => of(each)))));
}

function nodeTable(nodes) {
  return nodes.length ? part("Nodes", "", table("Nodes", ["Node", "Change", "Pods before", "Pods after"],
    nodes.map((node) => [node.node, node.change, node.podsBefore, node.podsAfter]))) : null;
}

function basis(caveats) {
  return caveats.length ? part("This rests on", "less than a whole cluster",
    element("ul", {}, ...caveats.map((caveat) => element("li", {}, caveat.message)))) : null;
}
