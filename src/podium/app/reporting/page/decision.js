// A decision: nodes by verdict, scores of feasible nodes, and candidates for preemption.

import { coloursOf, hatch } from "./colours.js";
import { few } from "./descriptions.js";
import { element, fill } from "./dom.js";
import { counted, number, sharedEnd, shortened, withoutEnd } from "./formats.js";
import { Search, headingOf } from "./tables.js";

const MOST = 100;
const CRITERIA = ["budget violations", "highest priority", "victims"];

class Candidates {
  constructor(data, onselect) {
    this.rows = new Map();
    const body = element("tbody", {}, ...data.candidates.slice(0, MOST).map((candidate) => this.row(data, candidate, onselect)));
    const headings = ["", "node", ...(data.criteria || CRITERIA), ""];
    const more = data.candidates.length > MOST ? element("p", { className: "faint" }, `and ${number(data.candidates.length - MOST)} more`) : null;
    const decided = data.decidedBy ? `, decided by the ${data.decidedBy}` : "";
    this.element = element("section", { className: "table" }, element("h2", {}, `${number(data.candidates.length)} where preemption would help${decided}`),
      element("div", { className: "scroll" }, element("table", {},
        element("thead", {}, element("tr", {}, ...headings.map((heading) => headingOf(heading)))), body)), more);
  }

  row(data, candidate, onselect) {
    const name = element("button", { type: "button", className: "link" }, data.nodes[candidate.node]);
    const costs = data.criteria ? candidate.costs : [candidate.violations, candidate.priority === null ? "" : number(candidate.priority), number(candidate.count)];
    const cells = [candidate.node === data.taken ? "→" : "", name, ...costs, few(candidate.victims, 4)];
    const made = element("tr", { className: "subject", onclick: () => onselect(candidate.node) },
      ...cells.map((cell, place) => element("td", { className: place > 1 && place < cells.length - 1 ? "number" : "" }, cell)));
    this.rows.set(candidate.node, made);
    return made;
  }

  choose(node) {
    this.rows.forEach((row, each) => row.classList.toggle("chosen", each === node));
  }
}

const MOST_SHOWN = 20_000;

class Mosaic {
  constructor(data, theme, onselect, ontell) {
    Object.assign(this, { data, theme, onselect, ontell });
    this.chosen = -1;
    this.groups = data.groups.map((text, group) => this.group(text, group));
    this.element = element("section", { className: "mosaic" }, element("h2", {}, "Nodes by verdict"), ...this.groups.map((each) => each.element));
    this.themed = () => this.draw();
    theme.on(this.themed);
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  group(text, group) {
    const nodes = [];
    this.data.groupOf.forEach((each, node) => {
      if (each === group) {
        nodes.push(node);
      }
    });
    const count = this.data.counts?.[group] ?? nodes.length;
    const how = count > nodes.length ? `${counted(count, "node")}, ${nodes.length} of them named` : counted(nodes.length, "node");
    const canvas = element("canvas", { tabIndex: 0, role: "img" });
    canvas.setAttribute("aria-label", `${how}: ${text}; arrow keys go through them`);
    const fits = this.data.fits && group === 0;
    const made = { nodes, canvas, fits, at: 0, element: element("div", { className: "group-of-nodes" },
      element("p", { className: fits ? "good" : "" }, element("strong", {}, `${fits ? "✓ " : "✕ "}${how}`), ` ${text}`), canvas) };
    canvas.addEventListener("pointermove", (event) => this.ontell(this.nodeAt(made, event)));
    canvas.addEventListener("pointerleave", () => this.ontell(-1));
    canvas.addEventListener("click", (event) => this.onselect(this.nodeAt(made, event)));
    canvas.addEventListener("keydown", (event) => this.key(made, event));
    return made;
  }

  nodeAt(group, event) {
    const box = group.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.cell), row = Math.floor((event.clientY - box.top) / this.cell);
    return column < this.columns ? group.nodes[row * this.columns + column] ?? -1 : -1;
  }

  key(group, event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns }[event.key];
    if (step) {
      event.preventDefault();
      group.at = Math.min(Math.max(group.at + step, 0), group.nodes.length - 1);
      this.onselect(group.nodes[group.at]);
    }
  }

  dispose() {
    this.theme.off(this.themed);
  }

  choose(node) {
    this.chosen = node;
    this.draw();
  }

  draw() {
    const width = this.element.clientWidth, all = this.data.nodes.length;
    if (!width) {
      return;
    }
    this.cell = all > 2000 ? 8 : all > 300 ? 12 : all > 40 ? 18 : 26;
    this.columns = Math.max(Math.floor(width / this.cell), 1);
    this.groups.forEach((group) => this.drawGroup(group, coloursOf(this.theme.name)));
  }

  drawGroup({ nodes, canvas, fits }, colours) {
    const shown = Math.min(nodes.length, MOST_SHOWN), rows = Math.ceil(shown / this.columns);
    const ratio = window.devicePixelRatio || 1, context = canvas.getContext("2d"), { cell } = this;
    const width = Math.min(shown, this.columns) * cell + 2, height = rows * cell + 2;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const isCandidate = new Set(this.data.candidates.map((candidate) => candidate.node));
    for (let place = 0; place < shown; place += 1) {
      const node = nodes[place], x = (place % this.columns) * cell + 1, y = Math.floor(place / this.columns) * cell + 1;
      context.fillStyle = fits ? colours.placed : isCandidate.has(node) ? colours.refused : colours.gone;
      context.fillRect(x, y, cell - 2, cell - 2);
      if (isCandidate.has(node)) {
        // A notch, so that the picture does not depend on colour.
        context.fillStyle = colours.paper;
        context.fillRect(x + (cell - 2) / 2, y, (cell - 2) / 2, (cell - 2) / 2);
      }
      if (node === this.data.taken || node === this.chosen) {
        context.strokeStyle = node === this.data.taken ? colours.disrupted : colours.mark;
        context.lineWidth = 2;
        context.strokeRect(x - 0.5, y - 0.5, cell - 1, cell - 1);
      }
    }
  }
}

const ROW = 20;
// Okabe and Ito's, without those that are hard to see on either ground; further plugins are the same ones hatched.
const PLUGINS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];

class Scores {
  constructor(data, theme, onselect, ontell) {
    Object.assign(this, { data, theme, onselect, ontell });
    this.chosen = -1;
    this.most = Math.max(...data.totals.slice(0, 1), 1);
    this.shared = sharedEnd(data.rated.slice(0, 500).map((node) => data.nodes[node]));
    this.canvas = element("canvas");
    this.spacer = element("div", { className: "spacer" });
    this.box = element("div", { className: "view scores", tabIndex: 0 }, element("div", { className: "layers" }, this.canvas), this.spacer);
    this.box.setAttribute("aria-label", "Scores by node; a table of the chosen node's is beside it");
    const swatches = data.plugins.map((plugin, place) => {
      const swatch = element("i", { className: "swatch" });
      const colour = PLUGINS[place % PLUGINS.length];
      swatch.style.background = place < PLUGINS.length ? colour : `repeating-linear-gradient(135deg, ${colour} 0 3px, transparent 3px 6px)`;
      return element("span", {}, swatch, plugin);
    });
    const fit = data.counts?.[0] ?? data.rated.length;
    const which = fit > data.rated.length ? `best ${number(data.rated.length)} of ${number(fit)}` : number(data.rated.length);
    this.element = element("section", {}, element("h2", {}, `Scores of the ${which} that fit, highest total first`),
      element("div", { className: "legend" }, ...swatches), this.box);
    this.box.addEventListener("scroll", () => this.draw());
    this.box.addEventListener("pointermove", (event) => this.ontell(this.nodeAt(event)));
    this.box.addEventListener("pointerleave", () => this.ontell(-1));
    this.box.addEventListener("click", (event) => this.onselect(this.nodeAt(event)));
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.themed = () => this.draw();
    theme.on(this.themed);
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  nodeAt(event) {
    const box = this.box.getBoundingClientRect(), row = Math.floor((event.clientY - box.top + this.box.scrollTop) / ROW);
    return this.data.rated[row] ?? -1;
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const place = Math.min(Math.max(this.data.rated.indexOf(this.chosen) + step, 0), this.data.rated.length - 1);
      this.box.scrollTop = Math.max(place * ROW - this.box.clientHeight / 2, 0);
      this.onselect(this.data.rated[place]);
    }
  }

  dispose() {
    this.theme.off(this.themed);
  }

  choose(node) {
    this.chosen = node;
    this.draw();
  }

  draw() {
    const { data, box } = this, height = Math.min(data.rated.length * ROW + 4, 420);
    box.style.height = `${height}px`;
    const width = box.clientWidth, ratio = window.devicePixelRatio || 1, context = this.canvas.getContext("2d");
    if (!width) {
      return;
    }
    this.spacer.style.height = `${Math.max(data.rated.length * ROW - height, 0)}px`;
    [this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const colours = coloursOf(this.theme.name), first = Math.floor(box.scrollTop / ROW);
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    for (let place = first; place < data.rated.length && place * ROW - box.scrollTop < height; place += 1) {
      this.drawRow(context, colours, place, place * ROW - box.scrollTop, width);
    }
  }

  drawRow(context, colours, place, top, width) {
    const { data } = this, node = data.rated[place], left = Math.min(Math.max(width * 0.25, 80), 220), scale = (width - left - 60) / this.most;
    if (node === this.chosen || node === data.taken) {
      context.fillStyle = colours.band;
      context.fillRect(0, top, width, ROW);
    }
    context.font = `${node === data.taken ? "bold " : ""}12px system-ui, sans-serif`;
    context.textBaseline = "middle";
    context.fillStyle = colours.ink;
    const name = withoutEnd(data.nodes[node], this.shared);
    context.fillText(`${node === data.taken ? "→ " : ""}${shortened(name, Math.floor((left - 20) / 6.8))}`, 6, top + ROW / 2);
    let x = left;
    data.scores[place].forEach((score, at) => {
      const wide = Math.max(score, 0) * scale, colour = PLUGINS[at % PLUGINS.length];
      context.fillStyle = at < PLUGINS.length ? colour : hatch(context, colour);
      context.fillRect(x, top + 3, Math.max(wide - 1, 0), ROW - 6);
      x += wide;
    });
    context.fillStyle = colours.faint;
    context.fillText(number(data.totals[place]), x + 6, top + ROW / 2);
  }
}

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
    const describe = (node) => this.describe(node);
    this.mosaic = new Mosaic(data, theme, select, describe);
    this.scores = data.rated.length ? new Scores(data, theme, select, describe) : null;
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
    this.describe(-1);
  }

  // Describes the node under the pointer, or else the chosen one.
  describe(hovered) {
    const node = hovered < 0 ? this.chosen : hovered;
    if (node < 0) {
      fill(this.about, element("p", { className: "faint" }, "Point at a node, or click one: it is described here."));
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
