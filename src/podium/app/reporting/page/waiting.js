// The pods that wait for a node, above the nodes: as bars, or, where they are many, as how many wait by priority.
import { shadeOf } from "./colours.js";
import { lanesOf, stepsFrom } from "./lanes.js";

const MOST_LANES = 12;
const LANE = 13;
const AREA = 84;
const NOBODY = 20;
const FADED = 0.13;

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
