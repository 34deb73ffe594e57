// The nodes that fit, best first: a bar of each plugin's score. Only the rows in sight are drawn.
import { coloursOf, hatch } from "./colours.js";
import { element } from "./dom.js";
import { number, sharedEnd, shortened } from "./formats.js";

const ROW = 20;
// Okabe and Ito's, without those that are hard to see on either ground; further plugins are the same ones hatched.
const PLUGINS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];

export class Scores {
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
    const name = data.nodes[node].slice(0, data.nodes[node].length - this.shared.length);
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
