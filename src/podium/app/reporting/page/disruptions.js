// Disruptions by time, their preemptors, and what each of them led to.

import { Axis, lanesOf } from "./axis.js";
import { coloursOf, hatch } from "./colours.js";
import { button, element, fill } from "./dom.js";
import { counted, number, shortened } from "./formats.js";

const AXIS = 26;
const LANE = 20;
const PAD = 6;
const MARK = 14;
const MOST_LANES = 8;
const MOST_ARROWS = 150;
const FADED = 0.13;

// The letter of a cause, since no colour stands alone.
const LETTERS = {
  preemption: "P", eviction: "E", drain: "D", autoscaler: "A", rescheduler: "R", "gang-release": "G", pressure: "K", taint: "T", "node-gone": "N", deletion: "X",
};
// By a scheduler; because of a node; by others.
const COLOURS = { preemption: "disrupted", "gang-release": "disrupted", pressure: "refused", taint: "refused", "node-gone": "refused" };

function colourOf(cause) {
  return COLOURS[cause] ?? "other";
}

// An axis whose ticks are dates, where times are.
class DatedAxis extends Axis {
  text(at) {
    if (!this.scene.start) {
      return super.text(at);
    }
    const text = new Date((this.scene.start + at) * 1000).toISOString(), isLong = this.scene.span > 86400;
    return isLong ? `${text.slice(5, 10)} ${text.slice(11, 16)}` : text.slice(11, 19);
  }
}

// Where everything lies, top to bottom.
function layoutOf(data) {
  const byRow = data.rows.map(() => []), lane = new Array(data.at.length).fill(0);
  data.row.forEach((row, place) => byRow[row].push(place));
  const rows = [];
  let top = AXIS;
  byRow.forEach((places) => {
    // A mark takes up a hundredth of the axis, however short what it is about.
    const bars = places
      .map((place) => ({ place, from: data.at[place], until: Math.max(data.ready[place] ?? data.gone[place] ?? data.at[place], data.at[place] + data.span / 60) }))
      .sort((left, right) => left.from - right.from || left.place - right.place);
    const { lanes, count } = lanesOf(bars, MOST_LANES);
    bars.forEach((bar, index) => {
      lane[bar.place] = lanes[index] ?? index % MOST_LANES;
    });
    const height = Math.max(Math.min(count, MOST_LANES), 1) * LANE + PAD;
    rows.push({ top, height });
    top += height;
  });
  return { rows, lane, height: top + PAD };
}

class Drawing {
  constructor(data, layout, colours, axis, lit) {
    Object.assign(this, { data, layout, colours, axis, lit });
  }

  // The middle of a disruption's mark.
  placeOf(place) {
    const { data, layout } = this;
    return { x: this.axis.ofTime(data.at[place]), y: layout.rows[data.row[place]].top + layout.lane[place] * LANE + LANE / 2 + PAD / 2 };
  }

  isInSight({ x }) {
    return x >= this.axis.left - MARK && x <= this.axis.right + MARK;
  }

  draw(context, width) {
    this.drawRows(context, width);
    this.drawTicks(context);
    context.save();
    context.beginPath();
    context.rect(this.axis.left - MARK, AXIS, width - this.axis.left + MARK, this.layout.height);
    context.clip();
    const shown = [...this.data.at.keys()].filter((place) => this.isInSight(this.placeOf(place)) || this.reaches(place));
    shown.forEach((place) => this.drawBar(context, place));
    const marked = shown.filter((place) => this.lit?.has(place)), arrows = marked.length ? marked : shown.length <= MOST_ARROWS ? shown : [];
    arrows.forEach((place) => this.drawWhom(context, place));
    arrows.forEach((place) => this.drawFollowing(context, place));
    shown.forEach((place) => this.drawMark(context, place));
    context.restore();
  }

  // Whether what came of a disruption before the axis begins is in sight.
  reaches(place) {
    const { axis, data } = this, until = data.ready[place] ?? data.gone[place];
    return axis.ofTime(data.at[place]) < axis.left && (until === null || axis.ofTime(until) > axis.left);
  }

  drawRows(context, width) {
    const { colours, data, layout } = this;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    layout.rows.forEach(({ top, height }, row) => {
      context.fillStyle = row % 2 ? colours.paper : colours.band;
      context.fillRect(0, top, width, height);
      context.fillStyle = colours.ink;
      context.fillText(shortened(data.rows[row], Math.floor((this.axis.left - 26) / 6.4)), 6, top + height / 2);
    });
  }

  drawTicks(context) {
    const { axis, colours, layout } = this;
    context.font = "11px system-ui, sans-serif";
    for (const { x, text } of axis.ticks()) {
      context.fillStyle = colours.line;
      context.fillRect(Math.round(x), AXIS - 6, 1, layout.height - AXIS);
      context.fillStyle = colours.faint;
      const half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(Math.max(x - half, axis.left - half), axis.right - half), AXIS / 2 - 2);
    }
  }

  fade(context, place) {
    context.globalAlpha = !this.lit || this.lit.has(place) ? 1 : FADED;
  }

  drawBar(context, place) {
    const { axis, colours, data } = this, { x, y } = this.placeOf(place), colour = colours[colourOf(data.causes[data.cause[place]])];
    const gone = data.gone[place] === null ? x : axis.ofTime(data.gone[place]);
    this.fade(context, place);
    if (gone > x) {
      context.fillStyle = hatch(context, colour, colours.paper);
      context.fillRect(x, y - 5, gone - x, 10);
      context.strokeStyle = colour;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y - 5, gone - x, 10);
    }
    if (data.ready[place] !== null) {
      const ready = axis.ofTime(data.ready[place]);
      context.fillStyle = colours.placed;
      context.fillRect(gone, y - 1, Math.max(ready - gone, 0), 2);
      context.beginPath();
      context.arc(Math.max(ready, x + MARK / 2 + 4), y, 4, 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  drawMark(context, place) {
    const { colours, data } = this, { x, y } = this.placeOf(place), cause = data.causes[data.cause[place]];
    const colour = colours[colourOf(cause)], isVain = data.vain[place];
    this.fade(context, place);
    context.fillStyle = isVain ? colours.paper : colour;
    context.fillRect(x - MARK / 2, y - MARK / 2, MARK, MARK);
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.strokeRect(x - MARK / 2 + 1, y - MARK / 2 + 1, MARK - 2, MARK - 2);
    context.fillStyle = isVain ? colour : colours.paper;
    context.font = "bold 10.5px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillText(LETTERS[cause] ?? "?", x, y + 0.5);
    context.textAlign = "start";
    context.globalAlpha = 1;
  }

  // From the row of the beneficiary to the pod.
  drawWhom(context, place) {
    const { colours, data, layout } = this, row = data.beneficiary[place];
    if (row < 0) {
      return;
    }
    const { x, y } = this.placeOf(place), { top, height } = layout.rows[row], isAbove = top + height <= y;
    const isSame = row === data.row[place];
    if (isSame) {
      return;
    }
    const from = isAbove ? top + height - PAD / 2 : top + PAD / 2, to = isAbove ? y - MARK / 2 - 2 : y + MARK / 2 + 2;
    this.fade(context, place);
    context.strokeStyle = context.fillStyle = colours.disrupted;
    context.lineWidth = 1.4;
    context.beginPath();
    context.arc(x, from, 3, 0, 2 * Math.PI);
    context.fill();
    line(context, x, from, x, to);
    head(context, x, to, Math.PI / 2 * (isAbove ? 1 : -1));
    context.globalAlpha = 1;
  }

  // From a disruption to the one to which it led.
  drawFollowing(context, place) {
    const following = this.data.following[place];
    if (following < 0) {
      return;
    }
    const from = this.placeOf(place), to = this.placeOf(following), right = Math.max(from.x, to.x), bend = right + 28;
    this.fade(context, place);
    context.strokeStyle = context.fillStyle = this.colours.ink;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(from.x + MARK / 2 + 2, from.y);
    context.bezierCurveTo(bend, from.y, bend, to.y, to.x + MARK / 2 + 6, to.y);
    context.stroke();
    head(context, to.x + MARK / 2 + 2, to.y, Math.PI);
    context.globalAlpha = 1;
  }
}

function line(context, fromX, fromY, toX, toY) {
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.lineTo(toX, toY);
  context.stroke();
}

// The head of an arrow that ends at a point, in a direction.
function head(context, x, y, angle) {
  context.save();
  context.translate(x, y);
  context.rotate(angle);
  context.beginPath();
  context.moveTo(0, 0);
  context.lineTo(-7, -4);
  context.lineTo(-7, 4);
  context.fill();
  context.restore();
}

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
    this.described = element("div", { className: "described", "aria-live": "polite" });
    document.body.append(this.tip);
    this.element = element("section", { className: "table" },
      element("header", { className: "controls" }, element("h2", {}, "Disruptions and their preemptors"),
        data.note ? element("span", { className: "faint" }, data.note) : null,
        element("span", { className: "group" }, button("−", "Show more of the time (-)", () => this.zoom(2)),
          button("+", "Show less of the time (+)", () => this.zoom(0.5)),
          button("All", "Show all of the time (0)", () => this.show(0, 1)))),
      this.legend(), this.box, this.described);
    theme.on(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.listen();
    this.describe();
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
    this.describe();
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

  describe() {
    const lines = this.chosen < 0 ? [] : this.data.lines[this.chosen], others = this.chosen < 0 ? 0 : this.lit().size - 1;
    fill(this.described, ...(lines.length
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
      fill(this.tip, this.data.lines[place].join("\n"));
      this.tip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - 460)}px`;
      this.tip.style.top = `${event.clientY + 16}px`;
    }
  }
}
