// Disruptions by time: hover tells, a click shows the chain that one belongs to, the wheel and keys show a part of the time.
import { coloursOf } from "./colours.js";
import { AXIS, DatedAxis, Drawing, LETTERS, colourOf, layoutOf } from "./disrupted.js";
import { button, element, fill } from "./dom.js";
import { counted, number } from "./formats.js";

const NEAR = 10;
const LEAST = 1 / 4096;
const RIGHT = 24;

export class DisruptionChart {
  constructor(data, theme) {
    this.data = data;
    this.theme = theme;
    this.layout = layoutOf(data);
    this.window = { from: 0, to: 1 };
    this.chosen = -1;
    this.before = new Map(data.following.flatMap((to, from) => (to < 0 ? [] : [[to, from]])));
    this.canvas = element("canvas", { role: "img", tabIndex: 0 });
    this.canvas.setAttribute("aria-label", this.summary());
    this.box = element("div", { className: "chart disruptions" }, this.canvas);
    this.tip = element("div", { className: "tip", role: "tooltip", hidden: true });
    this.told = element("div", { className: "told", "aria-live": "polite" });
    document.body.append(this.tip);
    this.element = element("section", { className: "table" },
      element("header", { className: "controls" }, element("h2", {}, "Who had to go, and for whom"),
        data.note ? element("span", { className: "faint" }, data.note) : null,
        element("span", { className: "group" }, button("−", "Show more of the time (-)", () => this.zoom(2)),
          button("+", "Show less of the time (+)", () => this.zoom(0.5)),
          button("All", "Show all of the time (0)", () => this.show(0, 1)))),
      this.legend(), this.box, this.told);
    theme.on(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.listen();
    this.tell();
  }

  listen() {
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
    });
    this.canvas.addEventListener("click", (event) => this.choose(this.at(event)));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.shiftKey) {
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.axis.shareAt(event.offsetX));
      }
    }, { passive: false });
  }

  key(event) {
    const acts = {
      ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), Escape: () => this.choose(-1), "+": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.show(0, 1),
    };
    const act = acts[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  }

  // The disruption before or after the chosen one, by time.
  step(by) {
    const order = [...this.data.at.keys()].sort((left, right) => this.data.at[left] - this.data.at[right] || left - right);
    const place = order.indexOf(this.chosen), next = place < 0 ? (by > 0 ? 0 : order.length - 1) : Math.min(Math.max(place + by, 0), order.length - 1);
    this.choose(order[next]);
  }

  choose(place) {
    this.chosen = place === this.chosen ? -1 : place;
    this.tell();
    this.draw();
  }

  // Who has to do with the chosen one: the chain in which it stands; null where none is chosen.
  lit() {
    if (this.chosen < 0) {
      return null;
    }
    const found = new Set([this.chosen]);
    for (let place = this.chosen; this.before.has(place) && !found.has(this.before.get(place)); ) {
      place = this.before.get(place);
      found.add(place);
    }
    for (let place = this.data.following[this.chosen]; place >= 0 && !found.has(place); place = this.data.following[place]) {
      found.add(place);
    }
    return found;
  }

  tell() {
    const lines = this.chosen < 0 ? [] : this.data.said[this.chosen], others = this.chosen < 0 ? 0 : this.lit().size - 1;
    fill(this.told, ...(lines.length
      ? [element("h3", {}, lines[0]), element("p", {}, lines.slice(1).join("; ")), others ? element("p", { className: "faint" }, `in a chain with ${counted(others, "other")}`) : null]
      : [element("p", { className: "faint" }, "A click on a mark shows what it led to; arrow keys go from one to the next; Shift and the wheel show less of the time.")]));
  }

  legend() {
    const swatch = (text, name) => element("span", {}, element("b", { className: `letter ${name}` }, text));
    const found = this.data.causes.map((cause) => {
      const item = swatch(LETTERS[cause] ?? "?", colourOf(cause));
      item.append(cause);
      return item;
    });
    const add = (className, text) => {
      found.push(element("span", {}, element("i", { className }), text));
    };
    add("swatch grace", "until it was gone");
    add("swatch good-again", "until another was ready in its place");
    if (this.data.vain.some((each) => each)) {
      add("swatch vain", "in vain");
    }
    if (this.data.following.some((each) => each >= 0)) {
      found.push(element("span", {}, element("b", {}, "→"), "took the place of the next"));
    }
    return element("div", { className: "legend" }, ...found);
  }

  summary() {
    const { data } = this, vain = data.vain.filter((each) => each).length;
    const causes = data.causes.map((cause, place) => `${number(data.cause.filter((each) => each === place).length)} ${cause}`);
    return `${counted(data.at.length, "disruption")} by time: ${causes.join(", ")}; ${number(vain)} in vain. The table below has all of them.`;
  }

  show(from, to) {
    const wide = Math.min(Math.max(to - from, LEAST), 1), first = Math.min(Math.max(from, 0), 1 - wide);
    this.window = { from: first, to: first + wide };
    this.draw();
  }

  zoom(factor, around = null) {
    const { from, to } = this.window, middle = around ?? (this.chosen < 0 ? (from + to) / 2 : this.data.at[this.chosen] / this.data.span);
    const wide = (to - from) * factor, share = (middle - from) / (to - from);
    this.show(middle - wide * Math.min(Math.max(share, 0), 1), middle + wide * (1 - Math.min(Math.max(share, 0), 1)));
  }

  draw() {
    const width = this.box.clientWidth, ratio = window.devicePixelRatio || 1, context = this.canvas.getContext("2d");
    if (!width) {
      return;
    }
    const { height } = this.layout, colours = coloursOf(this.theme.name);
    [this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const scene = { axis: "time", span: this.data.span, window: this.window, start: this.data.isDated ? this.data.start : 0 };
    this.axis = new DatedAxis(scene, null, Math.min(Math.max(width * 0.22, 90), 320), width - RIGHT);
    this.drawing = new Drawing(this.data, this.layout, colours, this.axis, this.lit());
    this.drawing.draw(context, width);
  }

  // The disruption under the pointer; -1 for none.
  at(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let found = -1, least = NEAR;
    if (y < AXIS) {
      return found;
    }
    this.data.at.forEach((_, place) => {
      const mark = this.drawing.placeOf(place), far = Math.max(Math.abs(mark.x - x), Math.abs(mark.y - y));
      if (far < least) {
        [found, least] = [place, far];
      }
    });
    return found;
  }

  hover(event) {
    const place = this.at(event);
    this.canvas.style.cursor = place < 0 ? "default" : "pointer";
    this.tip.hidden = place < 0;
    if (place >= 0) {
      fill(this.tip, this.data.said[place].join("\n"));
      this.tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - 460)}px`;
      this.tip.style.top = `${event.clientY + 16}px`;
    }
  }
}
