// The nodes by verdict: under each answer a cell for every node that gave it.
import { coloursOf } from "./colours.js";
import { element } from "./dom.js";
import { counted } from "./formats.js";

const MOST_SHOWN = 20_000;

export class Mosaic {
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
        // A notch, so that no colour has to tell.
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
