// The questions of `podium explain` and `podium plan`, and their answers as pictures.

import { DecisionPage } from "./drawing/decision.js";
import { button, choice, element, fill } from "./drawing/dom.js";
import { number } from "./drawing/formats.js";
import { Compared } from "./drawing/run_page.js";
import { listOf, tableOf } from "./drawing/tables.js";
import { Asking, Form, Messages } from "./form.js";
import { nodesOf } from "./node_answers.js";

// The page's theme for as long as a drawing lasts: who listens by it is forgotten with it.
class Lent {
  constructor(theme) {
    this.theme = theme;
    this.listeners = [];
  }

  get name() {
    return this.theme.name;
  }

  on(listener) {
    this.listeners.push(listener);
    this.theme.on(listener);
  }

  off(listener) {
    this.theme.off(listener);
  }

  turn() {
    this.theme.turn();
  }

  end() {
    this.listeners.forEach((listener) => this.theme.off(listener));
  }
}

export class Answer {
  constructor(theme) {
    this.theme = theme;
    this.element = element("div", { className: "answer" });
    this.stories = null;
    this.decision = null;
  }

  // Shows a picture; `beside` are elements behind its drawing.
  show(picture, ...beside) {
    this.clear();
    this.lent = new Lent(this.theme);
    const drawing = element("div", {});
    const select = (kind, name) => (this.stories ? this.stories.page.select(kind, name) : this.decision?.select(name));
    fill(this.element,
      element("h2", { className: "headline" }, picture.headline),
      ...picture.facts.map((fact) => element("p", { className: "fact" }, fact)),
      element("div", { className: "tables" }, ...picture.tables.map((table) => tableOf(table, select))),
      drawing, ...beside,
      listOf(picture.changesTitle, picture.changes, "each line is enough by itself"),
      listOf("Caveats", picture.caveats, ""),
      picture.text ? disclosure("As in the terminal", picture.text) : null);
    if (picture.decision && picture.decision.nodes.length) {
      this.decision = new DecisionPage(picture.decision, this.lent);
      fill(drawing, this.decision.element);
      this.decision.start();
    } else if (picture.stories.length) {
      this.stories = new Compared(picture.stories, this.lent);
      fill(drawing, this.stories.element);
      this.stories.page.start();
    }
  }

  // Shows nothing, and lets go of what was drawn.
  clear() {
    this.stories?.page.dispose();
    if (this.decision) {
      document.removeEventListener("keydown", this.decision.keys);
    }
    this.lent?.end();
    this.stories = this.decision = null;
    fill(this.element);
  }
}

// A text that is shown when it is asked for.
export function disclosure(title, text) {
  return element("details", {}, element("summary", {}, title), element("pre", {}, text));
}

const MOST = 200;
const SHOWN = [["all", "raw, normalised, weighted"], ["weighted", "weighted"], ["normalized", "normalised"], ["raw", "raw"]];
export class ExplainTab {
  constructor(page) {
    this.page = page;
    this.asking = new Asking(page.server);
    this.form = new Form(page.about.explain.fields, (what) => page.suggest(what), (values) => this.ask(values));
    this.messages = new Messages();
    this.view = new Answer(page.theme);
    this.element = element("div", { className: "asked" },
      element("aside", {}, element("h2", {}, page.about.explain.title), element("p", { className: "hint" }, page.about.explain.about), this.form.element),
      element("div", {}, this.asking.element, this.messages.element, this.view.element));
    this.shows = "all";
    this.part = "";
  }

  // Asks about a target at once, if one is given; else shows the last answer.
  show([target, node]) {
    if (target && target !== this.target) {
      this.form.set({ target, namespace: "", node: node || "" });
      this.ask(this.form.values);
    } else {
      this.paint();
    }
  }

  hide() {
    this.view.clear();
  }

  async ask(values) {
    this.target = values.target;
    this.messages.clear();
    this.view.clear();
    this.answer = null;
    try {
      this.answer = await this.asking.ask("explain", values);
      this.paint();
    } catch (error) {
      this.messages.bad(error);
    }
  }

  paint() {
    if (!this.answer || !this.element.isConnected) {
      return;
    }
    const { picture, table } = this.answer, taken = picture.decision ? picture.decision.nodes[picture.decision.taken] : "";
    const filter = element("input", { type: "search", placeholder: "nodes with", value: this.part, "aria-label": "Nodes whose name contains" });
    filter.addEventListener("input", () => {
      this.part = filter.value;
      this.paintTables(table, taken);
    });
    const what = choice("scores", SHOWN, this.shows, (value) => {
      this.shows = value;
      this.paintTables(table, taken);
    });
    this.tables = element("div", {});
    this.view.show(picture, element("h3", { className: "every" }, "Every plugin, every node"), element("div", { className: "toolbar" }, filter, what), this.tables);
    this.paintTables(table, taken);
  }

  paintTables(table, taken) {
    const part = this.part.trim().toLowerCase();
    const places = table.nodes.map((_, place) => place).filter((place) => table.nodes[place].toLowerCase().includes(part));
    const ranked = places.filter((place) => table.totals[place] !== null)
      .sort((left, right) => table.totals[right] - table.totals[left] || left - right);
    fill(this.tables,
      ranked.length ? section("Scores", "of the nodes that can take it, the best first; each is multiplied by its weight",
        scoreTable(table, ranked, this.shows, taken)) : null,
      section("Filters", "each is asked about each node; a scheduler asks no further than the first that turns a node down",
        filterTable(table, places, taken)));
  }
}

function section(title, note, ...children) {
  return element("section", { className: "part" }, element("h3", {}, title, note ? element("small", {}, ` ${note}`) : null), ...children);
}

function nodeCell(name, chosen) {
  return element("th", { scope: "row", className: name === chosen ? "chosen" : "" }, name, name === chosen ? element("b", {}, " ●") : null);
}

function filterTable(table, places, chosen) {
  if (!table.filters.length) {
    return element("p", {}, table.before[0] || "There is no node.");
  }
  const asked = table.filters.filter((column) => !column.skipped);
  const skipped = table.filters.filter((column) => column.skipped).map((column) => column.plugin);
  const rows = places.slice(0, MOST).map((place) => element("tr", {}, nodeCell(table.nodes[place], chosen),
    ...asked.map((column) => verdictCell(column.statuses[column.of[place]])),
    element("td", {}, table.before[place])));
  const head = element("tr", {}, element("th", { scope: "col" }, "Node"),
    ...asked.map((column) => element("th", { scope: "col" }, column.plugin)), element("th", { scope: "col" }, "Before them"));
  return element("div", { className: "wide", role: "region", tabIndex: 0, "aria-label": "Filters by node" },
    element("table", { className: "grid verdicts", "aria-label": "Filters" }, element("thead", {}, head), element("tbody", {}, ...rows)),
    more(places.length),
    skipped.length ? element("p", { className: "rest" }, `Nothing to say about this pod: ${skipped.join(", ")}`) : null);
}

function verdictCell(status) {
  if (status.status === "Success") {
    return element("td", { className: "good" }, "✓");
  }
  return element("td", { className: "bad", title: status.status }, `✗ ${status.reasons.join("; ") || status.status}`);
}

const KINDS = [
  ["raw", (score, place) => score.raw[place]],
  ["normalised", (score, place) => score.normalized[place]],
  ["weighted", (score, place) => score.normalized[place] * score.weight],
];

function scoreTable(table, places, shows, chosen) {
  const kinds = shows === "all" ? KINDS : KINDS.filter(([name]) => name.startsWith(shows.slice(0, 4)));
  const plugins = table.scores.map((score) => element("th", { scope: "col", colSpan: kinds.length }, score.plugin, element("small", {}, ` × ${score.weight}`)));
  const head = [element("tr", {}, element("th", { scope: "col", rowSpan: kinds.length > 1 ? 2 : 1 }, "Node"), ...plugins,
    element("th", { scope: "col", rowSpan: kinds.length > 1 ? 2 : 1 }, "Total"))];
  if (kinds.length > 1) {
    head.push(element("tr", {}, ...table.scores.flatMap(() => kinds.map(([name]) => element("th", { scope: "col", className: "minor" }, name)))));
  }
  const rows = places.slice(0, MOST).map((place) => element("tr", {}, nodeCell(table.nodes[place], chosen),
    ...table.scores.flatMap((score) => kinds.map(([, of]) => element("td", { className: "number" }, number(of(score, place))))),
    element("td", { className: "number total" }, number(table.totals[place]))));
  return element("div", { className: "wide", role: "region", tabIndex: 0, "aria-label": "Scores by node" },
    element("table", { className: "grid scores", "aria-label": "Scores" }, element("thead", {}, ...head), element("tbody", {}, ...rows)),
    more(places.length));
}

function more(count) {
  return count > MOST ? element("p", { className: "rest" }, `and ${number(count - MOST)} more nodes; the field above finds one`) : null;
}

// What an address says of a form; nothing, where it says it in no way that is known.
function valuesOf(text) {
  try {
    return Object.fromEntries(Object.entries(JSON.parse(text)).filter(([, value]) => typeof value === "string"));
  } catch {
    return {};
  }
}

export class PlansTab {
  constructor(page) {
    this.page = page;
    this.asking = new Asking(page.server);
    this.messages = new Messages();
    this.answer = new Answer(page.theme);
    this.hint = element("p", { className: "hint" }, "The answer is played on the cluster as it is at that moment; nothing is changed by asking.");
    this.aside = element("aside", {});
    this.element = element("div", { className: "asked" }, this.aside, element("div", {}, this.asking.element, this.messages.element, this.hint, this.answer.element));
    this.menu = element("nav", { className: "questions", "aria-label": "Questions" },
      ...page.about.plans.map((form) => {
        const made = button(form.title, `podium plan ${form.name}`, () => page.go("plans", form.name));
        made.dataset.question = form.name;
        return made;
      }));
    this.forms = new Map();
    this.answers = new Map();
  }

  // Asks a question when it is shown next, with only these values.
  fillIn(name, values) {
    this.filled = { name, values };
  }

  // Shows a question's form, and the answer that it has had last.
  show([name, values]) {
    const form = this.page.about.plans.find((each) => each.name === name) || this.current || this.page.about.plans[0];
    this.current = form;
    if (!this.forms.has(form.name)) {
      const suggest = (what) => this.page.suggest(what);
      this.forms.set(form.name, new Form(form.fields, suggest, (given) => this.ask(form, given), form.rest));
    }
    for (const each of this.menu.children) {
      each.setAttribute("aria-current", each.dataset.question === form.name ? "true" : "false");
    }
    if (values) {
      this.forms.get(form.name).set(valuesOf(values));
    }
    fill(this.aside, this.menu, element("p", { className: "hint" }, form.about), this.forms.get(form.name).element);
    this.messages.clear();
    const { filled } = this;
    this.filled = null;
    if (filled?.name === form.name) {
      const made = this.forms.get(form.name);
      made.reset();
      made.set(filled.values);
      this.ask(form, made.values);
      return;
    }
    this.paint(this.answers.get(form.name));
  }

  // What is drawn does not outlive its sight.
  hide() {
    this.answer.clear();
  }

  async ask(form, values) {
    this.messages.clear();
    this.answer.clear();
    this.answers.delete(form.name);
    try {
      const answer = await this.asking.ask(form.name, values);
      if (answer) {
        this.answers.set(form.name, answer);
        if (this.current === form && this.element.isConnected) {
          this.paint(answer);
        }
      }
    } catch (error) {
      this.messages.bad(error);
    }
  }

  paint(answer) {
    this.hint.hidden = Boolean(answer);
    if (!answer) {
      this.answer.clear();
      return;
    }
    const { picture, scenario } = answer, about = nodesOf(this.current.name, answer);
    const show = () => this.page.showOnNodes(about);
    this.answer.show(picture, about ? button("Show on the grid of nodes", "Colours the nodes by this answer", show) : null, scenario ? disclosure("The scenario that was played", JSON.stringify(scenario, null, 2)) : null);
  }
}
