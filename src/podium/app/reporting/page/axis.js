// The axis of a view, from moments to pixels and back; and lanes for bars that overlap in time.

import { since } from "./formats.js";

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
const DAY = 86400;
const APART = 76;

// The seconds of a moment by the clock of the place where the page is read.
function zoned(start) {
  const at = new Date(start);
  return at.getTime() / 1000 - at.getTimezoneOffset() * 60;
}

export class Axis {
  constructor(scene, story, left, right) {
    Object.assign(this, { scene, story, left, right });
    const { from, to } = scene.window;
    this.from = from;
    this.scale = (right - left) / (to - from);
  }

  // The pixel of a share of the whole axis.
  ofShare(share) {
    return this.left + (share - this.from) * this.scale;
  }

  // The pixel of a moment.
  of(moment) {
    return this.ofShare(this.scene.shareOf(this.story, moment));
  }

  // The pixel of a time from the start; of one that is never, that of the end.
  ofTime(time) {
    if (time === Infinity || this.scene.axis === "order") {
      return this.of(time === Infinity ? time : this.story.momentAt(time));
    }
    return this.ofShare(time / this.scene.span);
  }

  // The share of the whole axis at a pixel.
  shareAt(x) {
    return this.from + (x - this.left) / this.scale;
  }

  momentAt(x) {
    return this.scene.momentOf(this.story, this.shareAt(x));
  }

  // Where ticks are, and what stands there.
  ticks() {
    const { scene, story } = this;
    const span = scene.axis === "time" ? scene.span : story.eventCount + 1;
    if (!span) {
      return [];
    }
    const first = this.from * span, last = scene.window.to * span;
    const least = ((last - first) * APART) / Math.max(this.right - this.left, 1);
    const step = this.step(least);
    const ticks = [];
    // By the clock, ticks stand at whole minutes or hours of it.
    const shift = story?.isLive && scene.axis === "time" ? zoned(story.start) % step : 0;
    this.isLong = last - first > DAY;
    for (let at = Math.ceil((first + shift) / step) * step - shift; at <= last + step * 1e-9; at += step) {
      const rounded = +at.toPrecision(12);
      ticks.push({ x: this.ofShare(rounded / span), text: this.text(rounded) });
    }
    return ticks;
  }

  step(least) {
    if (this.scene.axis === "time") {
      const found = STEPS.find((step) => step >= least);
      if (found && least > 0.5) {
        return found;
      }
      if (!found) {
        return Math.ceil(least / DAY) * DAY;
      }
    }
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= least) * power;
    return this.scene.axis === "time" ? step : Math.max(step, 1);
  }

  text(at) {
    if (this.scene.axis === "time") {
      return this.story ? this.story.when(at, this.isLong) : since(at);
    }
    return at < 1 ? "before" : `#${at} ${this.story.when(this.story.timeOf(Math.min(at, this.story.eventCount) - 1), false)}`;
  }
}

// Gives each of the intervals, which are in order of their beginning, the first lane that is free by then. Where more
// than `most` lanes are needed, it stops there.
export function lanesOf(intervals, most = Infinity) {
  const free = [], lanes = [];
  for (const { from, until } of intervals) {
    let lane = free.findIndex((ends) => ends <= from);
    if (lane < 0) {
      lane = free.length;
    }
    if (lane >= most) {
      return { lanes: [], count: most + 1 };
    }
    free[lane] = until;
    lanes.push(lane);
  }
  return { lanes, count: free.length };
}

// What is drawn of each node, made when it is first seen and kept.
export class NodeLanes {
  constructor(story) {
    this.story = story;
    this.kept = new Map();
    this.steps = new Map();
  }

  // The pods that were on a node, each with its lane.
  of(node) {
    let found = this.kept.get(node);
    if (!found) {
      const { pods } = this.story;
      const bars = [...this.story.podsOfNode.of(node)]
        .map((pod) => ({ pod, from: pods.scheduled[pod], until: pods.ended[pod] }))
        .filter((bar) => bar.until > bar.from)
        .sort((left, right) => left.from - right.from || pods.priority[right.pod] - pods.priority[left.pod] || left.pod - right.pod);
      const { lanes, count } = lanesOf(bars);
      bars.forEach((bar, place) => {
        bar.lane = lanes[place];
      });
      found = { bars, count };
      this.kept.set(node, found);
    }
    return found;
  }

  // How much of a resource is requested of a node from which moment on: `{moment, byClass}` in order.
  stepsOf(node, resource) {
    const key = `${node} ${resource}`;
    let found = this.steps.get(key);
    if (!found) {
      found = this.count(node, resource);
      if (this.steps.size > 4000) {
        this.steps.clear();
      }
      this.steps.set(key, found);
    }
    return found;
  }

  count(node, resource) {
    const { story } = this, changes = [];
    for (const { pod, from, until } of this.of(node).bars) {
      changes.push([from, story.classOf[pod], story.asks(pod, resource)]);
      if (until !== Infinity) {
        changes.push([until, story.classOf[pod], -story.asks(pod, resource)]);
      }
    }
    changes.sort((left, right) => left[0] - right[0]);
    return stepsFrom(changes, story.classes.length);
  }
}

// Sums by class from changes `[moment, class, amount]` in order of time.
export function stepsFrom(changes, classes) {
  const steps = [], sums = new Float64Array(classes);
  changes.forEach(([moment, place, by], index) => {
    sums[place] += by;
    if (index + 1 === changes.length || changes[index + 1][0] !== moment) {
      steps.push({ moment, byClass: sums.slice() });
    }
  });
  return steps;
}
