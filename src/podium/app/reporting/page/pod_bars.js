// Pods as bars in time: a row for each node, and the pending pods above.

import { NodeLanes, lanesOf, stepsFrom } from "./axis.js";
import { hatch, shadeOf } from "./colours.js";

const BAR_LEAST = 5;
const LABEL_LEAST = 10;
export const AREA_LEAST = 8;
const FADED = 0.13;
const PAD = 2;

export class Rows {
  constructor(story) {
    this.story = story;
    this.lanes = new NodeLanes(story);
  }

  // Prepares colours and patterns; to be called when the theme or the selection changes.
  dress(context, colours, lit) {
    this.colours = colours;
    this.lit = lit;
    this.grace = hatch(context, colours.disrupted);
    this.gone = hatch(context, colours.line, colours.gone);
    const { classes } = this.story;
    this.fills = classes.map((_, place) => colours.priorities[shadeOf(place, classes.length)]);
    this.onFills = classes.map((_, place) => colours.onPriorities[shadeOf(place, classes.length)]);
  }

  // How high rows want to be so that all names can be read, looking at some of the nodes.
  wanted(rows, place) {
    const counts = rows.slice(0, 60).map(({ nodes }) => (nodes[place] < 0 ? 1 : this.lanes.of(nodes[place]).count));
    return Math.max(...counts, 1) * 19 + 2 * PAD;
  }

  // How high a lane is in a row of so many pixels; 0 where it has to be drawn as an area.
  laneHeight(node, height) {
    const { count } = this.lanes.of(node);
    const each = Math.min((height - 2 * PAD) / Math.max(count, 1), 22);
    return each >= BAR_LEAST ? each : 0;
  }

  draw(context, axis, node, top, height, resource) {
    this.drawLife(context, axis, node, top, height);
    const lane = this.laneHeight(node, height);
    if (lane) {
      for (const bar of this.lanes.of(node).bars) {
        this.drawBar(context, axis, bar, top + PAD + bar.lane * lane, lane - 1);
      }
    } else if (height < AREA_LEAST) {
      this.drawHeat(context, axis, node, top, height, resource);
      this.drawDisruptions(context, axis, node, top, height);
    } else {
      this.drawArea(context, axis, node, top, height, resource);
      this.drawDisruptions(context, axis, node, top, height);
    }
  }

  // Hatches the time in which the node was not there, or its machine was down.
  drawLife(context, axis, node, top, height) {
    const { story } = this, { added, gone } = story.nodes;
    const spans = [];
    if (added[node] >= 0) {
      spans.push([-1, added[node]]);
    }
    if (gone[node] !== Infinity) {
      spans.push([gone[node], Infinity]);
    }
    let down = -1;
    for (const event of story.eventsOfNode.of(node)) {
      const reason = story.reason(event);
      if (reason === "NodeDown" && down < 0) {
        down = event;
      } else if (reason === "NodeUp" && down >= 0) {
        spans.push([down, event]);
        down = -1;
      }
    }
    if (down >= 0) {
      spans.push([down, gone[node]]);
    }
    context.fillStyle = this.gone;
    for (const [from, to] of spans) {
      const x = Math.max(axis.of(from), axis.left);
      context.fillRect(x, top + 1, Math.min(axis.of(to), axis.right) - x, height - 2);
    }
  }

  // The pixels from which to which something is drawn; null for what is out of sight.
  extent(axis, from, until) {
    const start = axis.of(from), end = axis.of(until);
    if (end < axis.left || start > axis.right) {
      return null;
    }
    const left = Math.max(start, axis.left);
    return [left, Math.max(Math.min(end, axis.right), left + 1.5)];
  }

  drawBar(context, axis, { pod, from, until }, top, height) {
    const extent = this.extent(axis, from, until);
    if (!extent) {
      return;
    }
    const [left, right] = extent, { story, colours } = this, place = story.classOf[pod];
    context.globalAlpha = this.lit && !this.lit[pod] ? FADED : 1;
    context.fillStyle = this.fills[place];
    context.fillRect(left, top, right - left, height);
    const started = axis.of(Math.min(story.pods.started[pod], until));
    if (started > left + 1) {
      // It has its node, and does not run yet: an outline.
      context.fillStyle = colours.paper;
      context.fillRect(left + 1, top + 1, Math.min(started, right) - left - 1, height - 2);
    }
    const killing = story.pods.killing[pod];
    const dying = killing < until ? Math.max(axis.of(killing), left) : right;
    if (dying < right) {
      this.drawGrace(context, dying, right, top, height);
    }
    this.drawHolds(context, axis, pod, left, right, top, height);
    this.drawEnd(context, axis, pod, until, right, top, height);
    const isPale = started > left + 30 || dying - left < 60;
    this.drawLabel(context, pod, left, isPale ? right : dying, top, height, isPale);
    context.globalAlpha = 1;
  }

  // The time in which a pod is being deleted: pale and hatched.
  drawGrace(context, left, right, top, height) {
    context.fillStyle = this.colours.paper;
    context.globalAlpha *= 0.72;
    context.fillRect(left, top, right - left, height);
    context.globalAlpha /= 0.72;
    context.fillStyle = this.grace;
    context.fillRect(left, top, right - left, height);
  }

  // A double line along the time in which a budget, or something else, held a pod that was to go.
  drawHolds(context, axis, pod, left, right, top, height) {
    for (const held of this.story.holdsOf.get(pod) ?? []) {
      const from = Math.max(axis.ofTime(held.from), left), until = Math.min(axis.ofTime(held.until), right);
      for (const [y, colour] of [[0, this.colours.paper], [1, this.colours.refused], [3, this.colours.paper], [4, this.colours.refused]]) {
        context.fillStyle = colour;
        context.fillRect(from, top + height - 2 - y, Math.max(until - from, 2), y % 3 === 1 ? 1.6 : 1);
      }
    }
  }

  // A cross at the end of a pod that was disrupted.
  drawEnd(context, axis, pod, until, right, top, height) {
    if (this.story.pods.disruption[pod] < 0 || until === Infinity || axis.of(until) > axis.right + 1) {
      return;
    }
    const size = Math.min(height / 2, 4), middle = top + height / 2;
    context.strokeStyle = this.colours.disrupted;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(right - size, middle - size);
    context.lineTo(right + size, middle + size);
    context.moveTo(right - size, middle + size);
    context.lineTo(right + size, middle - size);
    context.stroke();
  }

  drawLabel(context, pod, left, right, top, height, isHollow) {
    const room = right - left - 8;
    if (height < LABEL_LEAST || room < 24) {
      return;
    }
    const { story } = this, size = Math.min(height - 1, 11), most = Math.floor(room / (size * 0.56));
    const name = story.podName(pod), short = name.slice(name.indexOf("/") + 1);
    const full = `${short} · ${story.pods.priority[pod]}`;
    const text = full.length <= most ? full : short.length <= most ? short : most > 5 ? `…${short.slice(1 - most)}` : "";
    context.font = `${size}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    if (isHollow) {
      // A rim of paper sets it off against what is hatched.
      context.strokeStyle = this.colours.paper;
      context.lineWidth = 3;
      context.lineJoin = "round";
      context.strokeText(text, left + 4, top + height / 2 + 0.5);
    }
    context.fillStyle = isHollow ? this.colours.ink : this.onFills[story.classOf[pod]];
    context.fillText(text, left + 4, top + height / 2 + 0.5);
  }

  // How much was requested, by class of priority, the most important at the bottom.
  drawArea(context, axis, node, top, height, resource) {
    const { story } = this, steps = this.lanes.stepsOf(node, resource), offered = story.offers(node, resource);
    const high = height - 2, bottom = top + high;
    const faded = this.lit ? this.litOnNode(node) : null;
    steps.forEach((step, index) => {
      const until = index + 1 < steps.length ? steps[index + 1].moment : Infinity;
      const extent = this.extent(axis, step.moment, until);
      if (!extent || (extent[1] - extent[0] <= 1.5 && axis.of(until) - axis.of(step.moment) < 0.3)) {
        return;
      }
      let base = bottom;
      const scale = high / Math.max(offered, step.byClass.reduce((sum, each) => sum + each, 0), 1);
      for (let place = step.byClass.length - 1; place >= 0; place -= 1) {
        const tall = step.byClass[place] * scale;
        if (tall > 0) {
          context.globalAlpha = faded && !faded[place] ? FADED : 1;
          context.fillStyle = this.fills[place];
          context.fillRect(extent[0], base - tall, extent[1] - extent[0], tall);
          base -= tall;
        }
      }
    });
    context.globalAlpha = 1;
  }

  // How much was requested, of a row that is too low for an area: the fuller, the stronger.
  drawHeat(context, axis, node, top, height, resource) {
    const steps = this.lanes.stepsOf(node, resource), offered = this.story.offers(node, resource);
    const isFaded = this.lit && !this.litOnNode(node).some((each) => each), high = height > 3 ? height - 1 : height;
    context.fillStyle = this.colours.priorities.at(-2);
    steps.forEach((step, index) => {
      const until = index + 1 < steps.length ? steps[index + 1].moment : Infinity;
      const extent = this.extent(axis, step.moment, until);
      if (extent) {
        const share = step.byClass.reduce((sum, each) => sum + each, 0) / Math.max(offered, 1);
        context.globalAlpha = Math.min(share, 1) * (isFaded ? FADED : 1);
        context.fillRect(extent[0], top, extent[1] - extent[0], high);
      }
    });
    context.globalAlpha = 1;
  }

  // By class, whether some pod of a node is lit.
  litOnNode(node) {
    const found = new Uint8Array(this.story.classes.length);
    for (const { pod } of this.lanes.of(node).bars) {
      found[this.story.classOf[pod]] |= this.lit[pod];
    }
    return found;
  }

  // Grace periods and disruptions on top of an area: a line along the grace period, a cross or a dot at its end.
  drawDisruptions(context, axis, node, top, height) {
    const { story, colours } = this, high = Math.max(Math.min(height - 2, 4), 1);
    // What is faded is drawn once at a place, since faint lines on top of one another are strong.
    const faded = new Set();
    for (const { pod, until } of this.lanes.of(node).bars) {
      const killing = story.pods.killing[pod];
      if (killing >= until) {
        continue;
      }
      const extent = this.extent(axis, killing, until), isFaded = this.lit && !this.lit[pod];
      if (extent && !(isFaded && faded.has(Math.round(extent[1])))) {
        if (isFaded) {
          faded.add(Math.round(extent[1]));
        }
        context.globalAlpha = this.lit && !this.lit[pod] ? FADED : 1;
        context.fillStyle = colours.disrupted;
        context.fillRect(extent[0], top + 1, extent[1] - extent[0], high);
        if (height >= 14) {
          this.drawEnd(context, axis, pod, until, Math.min(extent[1], axis.right), top + 1, 8);
        }
      }
    }
    context.globalAlpha = 1;
  }

  // The pod at a place in a row; -1 for none.
  podAt(axis, node, x, y, height) {
    const lane = this.laneHeight(node, height);
    if (!lane) {
      return -1;
    }
    const place = Math.floor((y - PAD) / lane);
    let found = -1;
    for (const bar of this.lanes.of(node).bars) {
      if (bar.lane === place) {
        const extent = this.extent(axis, bar.from, bar.until);
        if (extent && extent[0] - 1 <= x && x <= extent[1] + 1) {
          found = bar.pod;
        }
      }
    }
    return found;
  }

  // Where the bar of a pod lies in its row; null where the row is an area.
  placeOf(axis, pod, height) {
    const node = this.story.pods.node[pod];
    const lane = node < 0 ? 0 : this.laneHeight(node, height);
    const bar = lane ? this.lanes.of(node).bars.find((each) => each.pod === pod) : null;
    const extent = bar ? this.extent(axis, bar.from, bar.until) : null;
    return extent ? { left: extent[0], right: extent[1], top: PAD + bar.lane * lane, height: lane - 1 } : null;
  }
}

const MOST_LANES = 12;
const LANE = 16;
const AREA = 84;
const NOBODY = 20;

export class Waiting {
  constructor(story) {
    this.story = story;
    const { lanes, count } = lanesOf(story.waits, MOST_LANES);
    this.bars = story.waits.map((wait, place) => ({ ...wait, lane: lanes[place] ?? place }));
    this.isArea = count > MOST_LANES;
    this.height = count === 0 ? NOBODY : this.isArea ? AREA : Math.max(count * LANE + 6, NOBODY);
    this.steps = this.isArea ? this.count() : [];
    this.most = this.steps.reduce((most, step) => Math.max(most, sum(step.byClass)), 1);
  }

  count() {
    const { story } = this, changes = [];
    for (const { pod, from, until } of story.waits) {
      changes.push([from, story.classOf[pod], 1]);
      if (until !== Infinity) {
        changes.push([until, story.classOf[pod], -1]);
      }
    }
    changes.sort((left, right) => left[0] - right[0]);
    return stepsFrom(changes, story.classes.length);
  }

  draw(context, axis, top, colours, lit) {
    const { classes } = this.story;
    this.fills = classes.map((_, place) => colours.priorities[shadeOf(place, classes.length)]);
    if (!this.bars.length) {
      context.fillStyle = colours.faint;
      context.font = "11px system-ui, sans-serif";
      context.textBaseline = "middle";
      context.fillText("no pod waits", axis.left + 4, top + this.height / 2);
    } else if (this.isArea) {
      this.drawArea(context, axis, top, colours, lit);
    } else {
      for (const bar of this.bars) {
        this.drawBar(context, axis, bar, top, colours, lit);
      }
    }
  }

  drawBar(context, axis, bar, top, colours, lit) {
    const extent = this.extent(axis, bar);
    if (!extent) {
      return;
    }
    const [left, right] = extent, y = top + 3 + bar.lane * LANE, { story } = this;
    context.globalAlpha = lit && !lit[bar.pod] ? FADED : 1;
    context.fillStyle = this.fills[story.classOf[bar.pod]];
    context.fillRect(left, y, 4, LANE - 2);
    context.setLineDash([4, 2]);
    context.strokeStyle = colours.faint;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, y + 0.5, Math.max(right - left - 1, 1), LANE - 3);
    context.setLineDash([]);
    const name = story.podName(bar.pod), text = `${name.slice(name.indexOf("/") + 1)} · ${story.pods.priority[bar.pod]}`;
    const most = Math.floor((right - left - 10) / 6);
    if (most > 4) {
      context.fillStyle = colours.ink;
      context.font = "10.5px system-ui, sans-serif";
      context.textBaseline = "middle";
      context.fillText(text.length <= most ? text : `…${text.slice(1 - most)}`, left + 8, y + LANE / 2 - 0.5);
    }
    context.globalAlpha = 1;
  }

  drawArea(context, axis, top, colours, lit) {
    const bottom = top + AREA - 2, scale = (AREA - 16) / this.most;
    context.globalAlpha = lit ? 0.35 : 1;
    this.steps.forEach((step, index) => {
      const until = index + 1 < this.steps.length ? this.steps[index + 1].moment : Infinity;
      const left = Math.max(axis.of(step.moment), axis.left), right = Math.min(axis.of(until), axis.right);
      let base = bottom;
      for (let place = step.byClass.length - 1; right > left && place >= 0; place -= 1) {
        const tall = step.byClass[place] * scale;
        context.fillStyle = this.fills[place];
        context.fillRect(left, base - tall, Math.max(right - left, 1), tall);
        base -= tall;
      }
    });
    context.globalAlpha = 1;
    context.fillStyle = colours.faint;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "top";
    context.fillText(`up to ${this.most.toLocaleString("en-US")} pods wait`, axis.left + 4, top + 2);
    if (lit) {
      this.bars.filter((bar) => lit[bar.pod]).slice(0, 5000).forEach((bar) => {
        const extent = this.extent(axis, bar);
        if (extent) {
          context.fillStyle = this.fills[this.story.classOf[bar.pod]];
          context.fillRect(extent[0], bottom - 4 - (bar.lane % 12) * 5, Math.max(extent[1] - extent[0], 2), 3);
        }
      });
    }
  }

  extent(axis, { from, until }) {
    const start = axis.of(from), end = axis.of(until);
    return end < axis.left || start > axis.right
      ? null
      : [Math.max(start, axis.left), Math.max(Math.min(end, axis.right), Math.max(start, axis.left) + 2)];
  }

  // The waiting pod at a place; -1 for none.
  podAt(axis, x, y) {
    const lane = Math.floor((y - 3) / LANE);
    const found = this.isArea
      ? null
      : this.bars.findLast((bar) => {
          const extent = bar.lane === lane ? this.extent(axis, bar) : null;
          return extent && extent[0] - 1 <= x && x <= extent[1] + 1;
        });
    return found ? found.pod : -1;
  }

  // How many wait at a moment, by class.
  at(moment) {
    const found = new Float64Array(this.story.classes.length);
    for (const { pod, from, until } of this.bars) {
      if (from <= moment && moment < until) {
        found[this.story.classOf[pod]] += 1;
      }
    }
    return found;
  }

  // Where the bar of a pod lies; null for none.
  placeOf(axis, pod) {
    const bar = this.isArea ? null : this.bars.find((each) => each.pod === pod);
    const extent = bar ? this.extent(axis, bar) : null;
    return extent ? { left: extent[0], right: extent[1], top: 3 + bar.lane * LANE, height: LANE - 2 } : null;
  }
}

function sum(values) {
  return values.reduce((total, each) => total + each, 0);
}
