// What is drawn of disruptions: for each a mark when a pod began to go, hollow where it was in vain, hatched until it was
// gone, a line until another was ready in its place; arrows to who went for whom, and to what led to what.
import { Axis } from "./axis.js";
import { hatch } from "./colours.js";
import { shortened } from "./formats.js";
import { lanesOf } from "./lanes.js";

export const AXIS = 26;
const LANE = 20;
const PAD = 6;
const MARK = 14;
const MOST_LANES = 8;
const MOST_ARROWS = 150;
const FADED = 0.13;

// The letter of a cause, since no colour stands alone.
export const LETTERS = {
  preemption: "P", eviction: "E", drain: "D", autoscaler: "A", rescheduler: "R", "gang-release": "G", pressure: "K", taint: "T", "node-gone": "N", deletion: "X",
};
// By a scheduler; because of a node; by others.
const COLOURS = { preemption: "disrupted", "gang-release": "disrupted", pressure: "refused", taint: "refused", "node-gone": "refused" };

export function colourOf(cause) {
  return COLOURS[cause] ?? "other";
}

// An axis whose ticks are dates, where times are.
export class DatedAxis extends Axis {
  text(at) {
    if (!this.scene.start) {
      return super.text(at);
    }
    const text = new Date((this.scene.start + at) * 1000).toISOString(), isLong = this.scene.span > 86400;
    return isLong ? `${text.slice(5, 10)} ${text.slice(11, 16)}` : text.slice(11, 19);
  }
}

// Where everything lies, top to bottom.
export function layoutOf(data) {
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

export class Drawing {
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

  // From the row of whoever a pod went for to the pod.
  drawWhom(context, place) {
    const { colours, data, layout } = this, row = data.whom[place];
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
