// The nodes as a grid by zone and pool, coloured by how full they are, by their state, by what their loss would do, or by
// what an answer says about them.

import { coloursOf } from "./drawing/colours.js";
import { button, choice, element, fill } from "./drawing/dom.js";
import { NATURAL, amount, counted, number, percent } from "./drawing/formats.js";
import { Described } from "./described.js";

const EACH_MS = 1000;
const STATE = "state", RISK = "risk", ANSWER = "answer";
// Where the shades of fill begin.
const STEPS = [0, 0.25, 0.5, 0.7, 0.85, 0.95];
const STATES = [["ready", "gone"], ["cordoned or tainted", "refused"], ["not ready or under pressure", "disrupted"]];

export class GridTab {
  constructor(page) {
    this.page = page;
    this.by = "cpu";
    this.chosen = "";
    this.shown = "";
    this.groups = [];
    // Resolved when all nodes and pods are drawn for the first time.
    this.isDrawn = new Promise((resolve) => {
      this.onDrawn = resolve;
    });
    this.controls = element("div", { className: "toolbar" });
    this.legend = element("div", { className: "legend" });
    this.hint = element("p", { className: "hint", role: "status" });
    this.body = element("div", { className: "groups" });
    this.panel = element("aside", { className: "details", "aria-label": "The selected node" });
    this.described = new Described(page);
    this.element = element("div", { className: "node-grid" }, this.controls, this.legend, this.hint,
      element("div", { className: "below" }, this.body, this.panel));
    page.theme.on(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.body);
  }

  async show() {
    const { cluster, server } = this.page;
    cluster.watchFor(this, true);
    this.tick(true);
    this.timer = this.timer || setInterval(() => this.tick(), EACH_MS);
    // An evaluation of the cluster would delay the drawing.
    await this.isDrawn;
    this.risks = (await server.json("GET", "/ui/now")).evaluation?.losses?.short || null;
    this.tick(true);
  }

  hide() {
    clearInterval(this.timer);
    this.timer = 0;
    this.page.cluster.watchFor(this, false);
  }

  // The page is hidden, or visible again.
  pause() {
    this.hide();
  }

  resume() {
    this.show();
  }

  // Colours the nodes by an answer from now on.
  take(answer) {
    this.answer = answer;
    this.by = ANSWER;
    this.shown = "";
  }

  // Shows what has changed.
  tick(isForced = false) {
    const { nodes, pods, changes } = this.page.cluster;
    if (!nodes.isSynced || !pods.isSynced) {
      this.hint.textContent = `Reading the cluster: ${counted(nodes.known.size, "node")}, ${counted(pods.known.size, "pod")}.`;
    } else if (isForced || changes !== this.changes) {
      this.changes = changes;
      this.read(nodes.known.values(), pods.known.values());
      this.build();
      this.draw();
      this.onDrawn();
    }
  }

  // Sums what pods request of nodes, and puts the nodes into groups.
  read(nodes, pods) {
    const cells = new Map([...nodes].map((node) => [node.name, { node, used: {}, pods: 0 }]));
    for (const pod of pods) {
      const cell = pod.phase === "Succeeded" || pod.phase === "Failed" ? null : cells.get(pod.node);
      if (cell) {
        cell.pods += 1;
        for (const resource in pod.requests) {
          cell.used[resource] = (cell.used[resource] || 0) + pod.requests[resource];
        }
      }
    }
    this.cells = cells;
    const offered = new Set([...cells.values()].flatMap(({ node }) => Object.keys(node.offers)));
    this.resources = [...offered].filter((name) => name !== "pods" && [...cells.values()].some(({ used }) => used[name])).sort();
    const groups = Map.groupBy(cells.values(), ({ node }) => [node.zone && `zone ${node.zone}`, node.pool && `pool ${node.pool}`].filter((part) => part).join(", ") || "all nodes");
    this.sorted = [...groups].sort(([left], [right]) => NATURAL.compare(left, right));
    this.sorted.forEach(([, some]) => some.sort((left, right) => NATURAL.compare(left.node.name, right.node.name)));
  }

  // Makes the elements of the groups, unless they are there already.
  build() {
    const options = [...this.resources.map((name) => [name, `requested ${name}`]), [STATE, "state"], ...(this.risks ? [[RISK, "pods without a place if it is lost"]] : []),
      ...(this.answer ? [[ANSWER, `answer: ${this.answer.title}`]] : [])];
    const text = JSON.stringify([options, this.by, this.sorted.map(([title, cells]) => [title, cells.length])]);
    if (text === this.shown) {
      this.groups.forEach((group, place) => {
        group.cells = this.sorted[place][1];
      });
      return;
    }
    this.shown = text;
    fill(this.controls, choice("colour", options, this.by, (by) => {
      this.by = by;
      this.draw();
    }));
    this.groups = this.sorted.map(([title, cells]) => this.group(title, cells));
    fill(this.body, ...this.groups.map((group) => group.element));
  }

  group(title, cells) {
    const canvas = element("canvas", { tabIndex: 0, role: "img" }), note = element("small", {});
    const made = { title, cells, canvas, note, at: 0, element: element("section", { className: "group-of-nodes" }, element("h2", {}, title, " ", note), canvas) };
    const at = (event) => this.cellAt(made, event);
    canvas.addEventListener("pointermove", (event) => this.describe(at(event)));
    canvas.addEventListener("pointerleave", () => this.describe(null));
    canvas.addEventListener("click", (event) => this.choose(at(event)));
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns }[event.key];
      if (step) {
        event.preventDefault();
        made.at = Math.min(Math.max(made.at + step, 0), made.cells.length - 1);
        this.choose(made.cells[made.at]);
      }
    });
    return made;
  }

  cellAt(group, event) {
    const box = group.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.size), row = Math.floor((event.clientY - box.top) / this.size);
    return column < this.columns ? group.cells[row * this.columns + column] || null : null;
  }

  // How full a node is.
  share({ node, used }, resource) {
    return node.offers[resource] ? (used[resource] || 0) / node.offers[resource] : 0;
  }

  // Which shade or colour a node has, as a place in the legend.
  placeOf(cell) {
    if (this.by === STATE) {
      return cell.node.isBad ? 2 : cell.node.marks ? 1 : 0;
    }
    if (this.by === RISK) {
      return this.risks[cell.node.name] ? 1 : 0;
    }
    if (this.by === ANSWER) {
      return this.answer.of.get(cell.node.name)?.[0] || 0;
    }
    const share = this.share(cell, this.by);
    return STEPS.findLastIndex((step) => share >= step);
  }

  // The colours with their meanings, of which both the legend and the cells are made.
  scale() {
    const colours = coloursOf(this.page.theme.name);
    if (this.by === STATE) {
      return STATES.map(([text, name]) => [text, colours[name]]);
    }
    if (this.by === RISK) {
      return [["every pod finds a place", colours.gone], ["pods find no place", colours.disrupted]];
    }
    if (this.by === ANSWER) {
      return this.answer.scale.map(([text, name]) => [text, colours[name] || colours.priorities[name]]);
    }
    return STEPS.map((step, place) => [place + 1 < STEPS.length ? `${percent(step)} to ${percent(STEPS[place + 1])}` : `${percent(step)} and more`, colours.priorities[place]]);
  }

  lines(cell) {
    const { node, used, pods } = cell;
    const shares = this.resources.filter((name) => node.offers[name] || used[name]).map((name) => `${percent(this.share(cell, name))} of ${name}: ${amount(used[name] || 0, name)} of ${amount(node.offers[name] || 0, name)}`);
    const risk = this.risks?.[node.name], said = this.by === ANSWER && this.answer.of.get(node.name)?.[1];
    return [said, `${counted(pods, "pod")}; requested ${shares.join(", ")}`, node.marks, risk ? `if it is lost, ${counted(risk, "pod")} find no place` : ""].filter((line) => line);
  }

  // Says in the hint what is known of a node; without one, how to select it.
  describe(cell) {
    this.hint.textContent = cell ? `${cell.node.name}: ${this.lines(cell).join("; ")}`
      : "Point at a node, or go through them with the arrow keys; click it for its conditions and events.";
  }

  choose(cell) {
    if (!cell) {
      return;
    }
    const { page } = this, { name } = cell.node;
    this.chosen = name;
    this.describe(cell);
    fill(this.panel, element("header", {}, element("h2", {}, name)), ...this.lines(cell).map((line) => element("p", {}, line)),
      element("div", { className: "links" },
        button("Drain", "What happens if it is drained?", () => page.askPlan("drain", { nodes: name })),
        button("What if it fails", "What happens if it fails?", () => page.askPlan("fail", { nodes: name })),
        page.about.mode === "control-plane" ? button("Open", "Its YAML", () => page.go("objects", "nodes", "-", name)) : null),
      this.described.element);
    this.described.show("Node", name);
    this.draw();
  }

  draw() {
    const width = this.body.clientWidth;
    if (!width || !this.cells) {
      return;
    }
    const all = this.cells.size, scale = this.scale(), colours = coloursOf(this.page.theme.name);
    this.size = all > 2000 ? 10 : all > 300 ? 14 : all > 40 ? 20 : 28;
    this.columns = Math.max(Math.floor(width / this.size), 1);
    this.groups.forEach((group) => this.drawGroup(group, scale, colours));
    const swatches = scale.map(([text, colour]) => {
      const swatch = element("i", { className: "swatch" });
      swatch.style.background = colour;
      return element("span", {}, swatch, text);
    });
    fill(this.legend, ...swatches,
      element("span", {}, element("i", { className: "swatch notched" }), "cordoned or tainted"),
      element("span", {}, element("i", { className: "cross" }, "✕"), "not ready or under pressure"),
      element("span", {}, element("i", { className: "swatch chosen" }), "selected"));
    if (!this.hint.textContent.includes(": ") || this.hint.textContent.startsWith("Reading")) {
      this.describe(null);
    }
  }

  drawGroup({ cells, canvas, note, title }, scale, colours) {
    const rows = Math.ceil(cells.length / this.columns), ratio = window.devicePixelRatio || 1, { size } = this, inner = size - 2;
    const width = Math.min(cells.length, this.columns) * size, height = rows * size, context = canvas.getContext("2d");
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const places = new Array(scale.length).fill(0);
    cells.forEach((cell, place) => {
      const x = (place % this.columns) * size + 1, y = Math.floor(place / this.columns) * size + 1, shade = this.placeOf(cell);
      places[shade] += 1;
      context.fillStyle = scale[shade][1];
      context.fillRect(x, y, inner, inner);
      if (cell.node.isBad) {
        context.strokeStyle = colours.mark;
        context.lineWidth = Math.max(inner / 8, 1);
        context.beginPath();
        context.moveTo(x + 2, y + 2);
        context.lineTo(x + inner - 2, y + inner - 2);
        context.moveTo(x + inner - 2, y + 2);
        context.lineTo(x + 2, y + inner - 2);
        context.stroke();
      } else if (cell.node.marks) {
        context.fillStyle = colours.paper;
        context.beginPath();
        context.moveTo(x + inner * 0.4, y);
        context.lineTo(x + inner, y);
        context.lineTo(x + inner, y + inner * 0.6);
        context.fill();
      }
      if (cell.node.name === this.chosen) {
        context.strokeStyle = colours.mark;
        context.lineWidth = 2;
        context.strokeRect(x, y, inner, inner);
      }
    });
    const said = scale.map(([text], place) => (places[place] ? `${text}: ${number(places[place])}` : "")).filter((text) => text).join(", ");
    note.textContent = `${counted(cells.length, "node")}; ${said}`;
    canvas.setAttribute("aria-label", `${title}, ${note.textContent}; arrow keys go through the nodes`);
  }
}
