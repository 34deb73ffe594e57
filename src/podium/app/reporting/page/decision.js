// A decision: what each node answered, how those that fit were rated, and where preemption would help.
import { Candidates } from "./candidates.js";
import { element, fill } from "./dom.js";
import { counted, number } from "./formats.js";
import { Mosaic } from "./mosaic.js";
import { Scores } from "./scores.js";
import { Search } from "./search.js";

export class DecisionPage {
  constructor(data, theme) {
    this.data = data;
    this.placeOf = new Map(data.nodes.map((name, place) => [name, place]));
    this.scoreOf = new Map(data.rated.map((node, place) => [node, place]));
    this.candidateOf = new Map(data.candidates.map((candidate) => [candidate.node, candidate]));
    this.rejectedOf = new Map(data.rejected);
    this.chosen = data.taken;
    const select = (node) => this.choose(node);
    this.search = new Search("nodes", () => data.nodes.map((name) => ["node", name]), (_, name) => this.select(name));
    this.about = element("aside", { className: "details", "aria-live": "polite", "aria-label": "The node that is chosen" });
    const tell = (node) => this.tell(node);
    this.mosaic = new Mosaic(data, theme, select, tell);
    this.scores = data.rated.length ? new Scores(data, theme, select, tell) : null;
    this.candidates = data.candidates.length ? new Candidates(data, select) : null;
    this.parts = [this.mosaic, this.scores, this.candidates].filter((part) => part);
    this.element = element("div", { className: "decision" },
      element("div", { className: "controls" }, this.search.element),
      element("div", { className: "below" }, element("div", {}, ...this.parts.map((part) => part.element)), this.about));
    this.keys = (event) => {
      if (event.target.closest("input, select, textarea, [contenteditable]")) {
        return;
      }
      if (event.key === "/") {
        event.preventDefault();
        this.search.focus();
      } else if (event.key === "d" && !event.ctrlKey && !event.metaKey) {
        theme.turn();
      } else if (event.key === "Escape") {
        this.choose(-1);
      }
    };
    document.addEventListener("keydown", this.keys);
  }

  // Lets go of what outlives the page's elements.
  dispose() {
    document.removeEventListener("keydown", this.keys);
    this.parts.forEach((part) => part.dispose?.());
  }

  start() {
    this.choose(this.chosen);
  }

  select(name) {
    this.choose(this.placeOf.get(name) ?? -1);
  }

  choose(node) {
    this.chosen = node;
    this.parts.forEach((part) => part.choose(node));
    this.tell(-1);
  }

  // Tells of the node under the pointer, or else of the one that is chosen.
  tell(hovered) {
    const node = hovered < 0 ? this.chosen : hovered;
    if (node < 0) {
      fill(this.about, element("p", { className: "faint" }, "Point at a node, or click one: this is where it is told of."));
      return;
    }
    fill(this.about, element("h2", {}, this.data.nodes[node]), ...this.lines(node).map((line) => element("p", {}, line)), ...this.rating(node));
  }

  lines(node) {
    const { data } = this, lines = [data.groups[data.groupOf[node]]];
    if (node === data.taken) {
      lines.unshift(data.role);
    }
    const candidate = this.candidateOf.get(node), rejected = this.rejectedOf.get(node);
    if (candidate) {
      lines.push(`preempting there takes ${number(candidate.count)}: ${candidate.victims.join(", ")}`);
      if (data.criteria) {
        lines.push(data.criteria.map((criterion, place) => `${criterion} ${candidate.costs[place]}`).join(", "));
      } else {
        const priority = candidate.priority === null ? "" : `, highest priority ${number(candidate.priority)}`;
        lines.push(`budget violations ${candidate.violations}${priority}`);
      }
    } else if (rejected) {
      lines.push(`preempting there does not help: ${rejected}`);
    }
    return lines;
  }

  rating(node) {
    const place = this.scoreOf.get(node);
    if (place === undefined) {
      return [];
    }
    const { data } = this, total = data.totals[place], before = data.totals.filter((each) => each > total).length;
    const equal = data.totals.filter((each) => each === total).length - 1;
    const rank = `number ${number(before + 1)} of ${number(data.rated.length)} by total${equal ? `, as ${counted(equal, "other")}` : ""}`;
    const rows = data.plugins.map((plugin, at) => [plugin, data.scores[place][at]]);
    rows.push(["total", total]);
    return [element("p", {}, rank),
      element("table", {}, ...rows.map(([plugin, score]) => element("tr", {}, element("td", {}, plugin), element("td", { className: "number" }, number(score)))))];
  }
}
