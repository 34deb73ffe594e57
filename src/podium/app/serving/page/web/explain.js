// Why a pod is where it is, or why not: every plugin's verdict about every node, and the scores of those that fit.
import { choice, element, fill } from "./drawing/dom.js";
import { number } from "./drawing/formats.js";
import { Answer } from "./answer.js";
import { Asking } from "./asking.js";
import { Form } from "./form.js";
import { Messages } from "./messages.js";

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
      element("aside", {}, element("h2", {}, page.about.explain.title), element("p", { className: "hint" }, page.about.explain.told), this.form.element),
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

function section(title, told, ...children) {
  return element("section", { className: "part" }, element("h3", {}, title, told ? element("small", {}, ` ${told}`) : null), ...children);
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
    ...asked.map((column) => element("th", { scope: "col" }, column.plugin)), element("th", { scope: "col" }, ""));
  return element("div", { className: "wide" },
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
  return element("div", { className: "wide" },
    element("table", { className: "grid scores", "aria-label": "Scores" }, element("thead", {}, ...head), element("tbody", {}, ...rows)),
    more(places.length));
}

function more(count) {
  return count > MOST ? element("p", { className: "rest" }, `and ${number(count - MOST)} more nodes; the field above finds one`) : null;
}
