// One run drawn along time: pending pods, nodes with their pods, preemptions, and events.

import { Axis } from "./axis.js";
import { KINDS, coloursOf, shadeOf } from "./colours.js";
import { element } from "./dom.js";
import { percent, sharedEnd, sharedStart, shortened, withoutEnd } from "./formats.js";
import { AREA_LEAST, Rows, Waiting } from "./pod_bars.js";

const MOST = 150;

export class Arrows {
  constructor(view) {
    this.view = view;
  }

  // All arrows between bars in sight, unless there are too many to follow.
  drawAll(context, colours) {
    const { view } = this, { story } = view, near = [];
    for (const preemption of story.preemptions) {
      const row = view.scene.rowOfName.get(story.nodeName(story.pods.node[preemption.victim]));
      const top = view.above + row * view.rowHeight - view.scroll;
      if (top + view.rowHeight >= view.above && top <= view.below) {
        near.push(preemption);
      }
      if (near.length > MOST) {
        return;
      }
    }
    for (const { event, victim, by } of near) {
      const to = view.placeOf(victim), x = view.axis.of(event);
      if (!to || x < view.axis.left - 1 || x > view.axis.right) {
        continue;
      }
      const from = by < 0 ? null : view.placeOf(by, true);
      if (!from && !view.rows.laneHeight(story.pods.node[victim], view.rowHeight)) {
        // An area has a line for the grace period, and a cross at its end.
        continue;
      }
      context.globalAlpha = !view.lit || view.lit[victim] ? 0.8 : 0.1;
      this.arrow(context, colours, x, from ? from.top + from.height : to.top - 12, x, to.top + Math.min(to.height, 10) / 2);
      context.globalAlpha = 1;
    }
  }

  // The arrows of the pod under the pointer, from where it waits, too.
  drawHover(context, colours) {
    const { view } = this, { hover, selection } = view.scene, { story } = view;
    const pods = new Set();
    if (hover && hover.place === view.place && hover.pod >= 0) {
      pods.add(hover.pod);
    }
    if (selection && selection.kind === "pod") {
      story.find(selection).pods.forEach((pod) => pods.add(pod));
    }
    for (const pod of pods) {
      this.outline(context, colours, pod);
    }
    for (const preemption of story.preemptions) {
      if (pods.has(preemption.victim) || pods.has(preemption.by)) {
        this.draw(context, colours, preemption, 1, true);
      }
    }
  }

  outline(context, colours, pod) {
    const { view } = this;
    for (const place of [view.placeOf(pod), view.placeOf(pod, true)]) {
      if (place && place.top + place.height > 0 && place.top < view.below) {
        context.strokeStyle = colours.mark;
        context.lineWidth = 2;
        const left = Math.max(place.left, view.axis.left);
        context.strokeRect(left - 1, place.top - 1, Math.max(Math.min(place.right, view.axis.right) - left, 2) + 2, place.height + 2);
      }
    }
  }

  draw(context, colours, { event, victim, by }, alpha, fromWaiting) {
    const { view } = this, to = view.placeOf(victim);
    const comes = by < 0 ? null : view.placeOf(by), waits = by < 0 || !fromWaiting ? null : view.placeOf(by, true);
    if (!to || (!comes && !waits)) {
      return;
    }
    const x = view.axis.of(event);
    if (x < view.axis.left - 1 || x > view.axis.right + 1) {
      return;
    }
    context.globalAlpha = alpha;
    if (waits) {
      this.arrow(context, colours, x, waits.top + waits.height, x, to.top + Math.min(to.height, 10) / 2);
    }
    const isBeside = by >= 0 && view.story.pods.node[by] === view.story.pods.node[victim];
    if (comes && !isBeside) {
      this.arrow(context, colours, comes.left, comes.top + comes.height / 2, x + 1, to.top + to.height / 2);
    }
    context.globalAlpha = 1;
  }

  arrow(context, colours, fromX, fromY, toX, toY) {
    // Those of one moment begin at different heights, and bend so that they do not lie on one another.
    const isDown = Math.abs(toX - fromX) < 4, bend = isDown ? 16 + (fromY % 160) / 2 : Math.min(Math.abs(toX - fromX) / 3, 40);
    context.strokeStyle = colours.disrupted;
    context.fillStyle = colours.disrupted;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(fromX, fromY);
    context.bezierCurveTo(fromX + (isDown ? bend : -bend), fromY, toX + bend, toY, toX, toY);
    context.stroke();
    context.beginPath();
    context.moveTo(toX, toY);
    context.lineTo(toX + 6, toY - 4);
    context.lineTo(toX + 6, toY + 4);
    context.fill();
  }
}

const ROW = 11;
const STRIP_HEIGHT = KINDS.length * ROW + 6;

export class Strip {
  constructor(story) {
    this.story = story;
  }

  // Of what is selected, only the events: of the pods that are lit, and of the node.
  draw(context, axis, top, colours, lit, node) {
    const { story } = this, columns = Math.ceil(axis.right - axis.left) + 1;
    const counts = KINDS.map(() => new Float64Array(columns));
    const step = 2;
    for (let event = 0; event < story.eventCount; event += 1) {
      const pod = story.events.pod[event];
      if (lit && (pod < 0 || !lit[pod]) && (node < 0 || story.events.node[event] !== node)) {
        continue;
      }
      const x = axis.of(event) - axis.left;
      if (x >= 0 && x < columns) {
        counts[story.kind(event)][x - (x % step) | 0] += story.events.count[event];
      }
    }
    counts.forEach((row, place) => {
      const most = row.reduce((best, each) => Math.max(best, each), 1);
      context.fillStyle = colours[KINDS[place][0]];
      row.forEach((count, x) => {
        if (count) {
          const tall = Math.max((ROW - 2) * (0.35 + (0.65 * Math.log1p(count)) / Math.log1p(most)), 3);
          context.fillRect(axis.left + x, top + 3 + place * ROW + (ROW - 1 - tall), step, tall);
        }
      });
    });
  }

  // The events within some pixels of a place, those of the row's kind first to come.
  eventsAt(axis, x, y) {
    const kind = Math.floor((y - 3) / ROW);
    const first = axis.scene.axis === "time" ? axis.momentAt(x - 3) : axis.momentAt(x - 2);
    const found = [];
    for (let event = Math.max(first, 0); event < this.story.eventCount && axis.of(event) <= x + 3; event += 1) {
      if (axis.of(event) >= x - 3 && this.story.kind(event) === kind) {
        found.push(event);
      }
    }
    return found;
  }
}

const TICKS = 24;
const MARGIN = 14;

// As much of a name as so many pixels have room for: what all share goes first, and then the middle.
function fitted(context, full, room, start) {
  const wide = context.measureText(full).width, most = Math.max(Math.floor((room / wide) * full.length) - 2, 4);
  if (wide <= room) {
    return full;
  }
  return start && full.startsWith(start) ? `…${full.slice(Math.max(start.length, full.length - most))}` : shortened(full, most);
}

export class View {
  constructor(scene, place) {
    this.scene = scene;
    this.place = place;
    this.story = scene.stories[place];
    this.rows = new Rows(this.story);
    this.waiting = new Waiting(this.story);
    this.strip = new Strip(this.story);
    this.arrows = new Arrows(this);
    this.base = element("canvas", { className: "base" });
    this.top = element("canvas", { className: "top" });
    this.spacer = element("div", { className: "spacer" });
    this.layers = element("div", { className: "layers", "aria-hidden": "true" }, this.base, this.top);
    this.element = element("div", { className: "view", tabIndex: 0, role: "application" }, this.layers, this.spacer);
    this.element.setAttribute("aria-label", `${this.story.name || "the run"} over time; arrow keys move through it`);
    const names = scene.rows.map((row) => row.name);
    this.shared = sharedEnd(names);
    this.sharedStart = sharedStart(names.filter((name) => name.endsWith(this.shared)));
    this.element.addEventListener("scroll", () => this.scrolled());
    this.drawn = { base: 0, ms: 0, longest: 0 };
    scene.on((changed) => this.changed(changed));
  }

  changed(changed) {
    const overlay = ["time", "moments", "hover", "row"];
    if ([...changed].some((name) => !overlay.includes(name))) {
      this.draw();
    } else {
      this.drawTop();
    }
  }

  scrolled() {
    if (this.onscroll) {
      this.onscroll(this.element.scrollTop);
    }
    this.scene.set({ scrolled: true });
  }

  // How high rows may be so that many are in sight, and names can be read where there is room.
  fit() {
    const rows = this.scene.rows.length, room = Math.min(Math.max(window.innerHeight * 0.62, 340), 900);
    const left = room - TICKS - this.scene.waitingHeight - STRIP_HEIGHT;
    return Math.min(Math.max(left / Math.max(rows, 1), 24), this.rows.wanted(this.scene.rows, this.place), 240);
  }

  // Whether rows are so low that they only show how full nodes are.
  get isHeat() {
    return (this.scene.rowHeight || this.scene.fittingHeight) < AREA_LEAST;
  }

  // How high the view has to be to show all rows.
  wanted(rowHeight) {
    return TICKS + this.scene.waitingHeight + this.scene.rows.length * rowHeight + STRIP_HEIGHT + 2;
  }

  // The layout in pixels, from the size that the page gives.
  measure() {
    this.width = this.element.clientWidth;
    this.height = this.element.clientHeight;
    const wide = this.width > (this.place > 0 ? 420 : 560);
    this.gutter = this.place > 0 && wide ? 74 : wide ? (this.width > 760 ? 224 : 190) : Math.max(Math.round(this.width * 0.26), 74);
    this.above = TICKS + this.scene.waitingHeight;
    this.below = this.height - STRIP_HEIGHT;
    const { rows } = this.scene;
    this.rowHeight = this.scene.rowHeight || this.scene.fittingHeight;
    const total = this.above + rows.length * this.rowHeight + STRIP_HEIGHT;
    this.spacer.style.height = `${Math.max(Math.floor(total - this.height), 0)}px`;
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.base, this.top]) {
      const size = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
      if (canvas.width !== size[0] || canvas.height !== size[1]) {
        [canvas.width, canvas.height] = size;
        canvas.style.width = `${this.width}px`;
        canvas.style.height = `${this.height}px`;
      }
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.axis = new Axis(this.scene, this.story, this.gutter, this.width - MARGIN);
    this.scroll = Math.min(this.element.scrollTop, Math.max(total - this.height, 0));
  }

  // The rows in sight, with where they are.
  *inSight() {
    const { rows } = this.scene;
    const first = Math.max(Math.floor(this.scroll / this.rowHeight), 0);
    for (let place = first; place < rows.length; place += 1) {
      const top = this.above + place * this.rowHeight - this.scroll;
      if (top > this.below) {
        return;
      }
      yield { row: rows[place], place, top, node: rows[place].nodes[this.place] };
    }
  }

  draw() {
    if (this.scene.isFrozen) {
      return;
    }
    const began = performance.now();
    this.measure();
    if (!this.width || !this.height) {
      // Nobody sees it; it is drawn when it has a size.
      return;
    }
    const { scene, axis } = this, context = this.base.getContext("2d"), colours = coloursOf(scene.theme);
    this.colours = colours;
    this.lit = this.story.lit(scene.selection);
    this.rows.dress(context, colours, this.lit);
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, this.width, this.height);
    this.drawGrid(context, colours);
    const resource = scene.resourceIn(this.story);
    this.clipped(context, 0, this.above, this.width, this.below - this.above, () => {
      for (const { place, top, node } of this.inSight()) {
        if (place % 2 && this.rowHeight >= 8) {
          context.fillStyle = colours.band;
          context.globalAlpha = 0.6;
          context.fillRect(0, top, this.width, this.rowHeight);
          context.globalAlpha = 1;
        }
        if (node >= 0) {
          this.rows.draw(context, axis, node, top, this.rowHeight, resource);
        }
      }
      this.arrows.drawAll(context, colours);
    });
    this.clipped(context, 0, TICKS, this.width, this.scene.waitingHeight, () => {
      this.waiting.draw(context, axis, TICKS, colours, this.lit);
    });
    const chosen = this.story.find(scene.selection);
    this.strip.draw(context, axis, this.below, colours, this.lit, chosen ? chosen.node : -1);
    this.drawFrame(context, colours);
    this.drawTop();
    this.drawn.ms = performance.now() - began;
    this.drawn.longest = Math.max(this.drawn.longest, this.drawn.ms);
    this.drawn.base += 1;
  }

  clipped(context, x, y, width, height, draw) {
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    draw();
    context.restore();
  }

  drawGrid(context, colours) {
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    let taken = 0;
    for (const { x, text } of this.axis.ticks()) {
      context.fillStyle = colours.line;
      context.fillRect(Math.round(x), TICKS - 5, 1, this.height);
      context.fillStyle = colours.faint;
      const room = context.measureText(text).width;
      const left = Math.min(x + 3, this.width - room - 2);
      if (left > taken) {
        context.fillText(text, left, TICKS / 2 - 2);
        taken = left + room + 4;
      }
    }
  }

  drawFrame(context, colours) {
    context.fillStyle = colours.line;
    for (const y of [TICKS, this.above, this.below]) {
      context.fillRect(0, Math.round(y) - 1, this.width, 1);
    }
    context.fillStyle = colours.faint;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    if (this.gutter > 70) {
      context.fillText("waiting", 8, TICKS + Math.min(this.scene.waitingHeight / 2, 12));
      KINDS.forEach(([name, text], place) => {
        context.fillStyle = colours[name];
        context.fillText(shortened(text, Math.floor((this.gutter - 12) / 5.6)), 8, this.below + 9 + place * 11);
      });
    }
  }

  // What follows the pointer and time: gauges, names, the line of time, and what is under the pointer.
  drawTop() {
    if (!this.axis || this.scene.isFrozen) {
      return;
    }
    const context = this.top.getContext("2d"), { scene, colours } = this;
    context.clearRect(0, 0, this.width, this.height);
    this.clipped(context, 0, this.above, this.width, this.below - this.above, () => {
      for (const { row, place, top, node } of this.inSight()) {
        this.drawGauge(context, row, place, top, node);
      }
    });
    this.arrows.drawHover(context, colours);
    const x = this.axis.ofShare(scene.cursorShare(this.place));
    if (x >= this.gutter - 1 && x <= this.width - MARGIN + 1) {
      context.fillStyle = colours.cursor;
      context.fillRect(Math.round(x) - 0.75, 2, 1.5, this.height);
      context.beginPath();
      context.moveTo(x - 5, 1);
      context.lineTo(x + 5, 1);
      context.lineTo(x, 9);
      context.fill();
    }
  }

  drawGauge(context, row, place, top, node) {
    const { colours, scene } = this, height = this.rowHeight;
    const isChosen = scene.selection && scene.selection.kind === "node" && scene.selection.name === row.name;
    if (place === scene.row || isChosen) {
      context.strokeStyle = colours.cursor;
      context.lineWidth = 1.5;
      context.strokeRect(1, top + 1, this.width - 2, Math.max(height - 2, 2));
    }
    if (node < 0) {
      return;
    }
    const resource = scene.resourceIn(this.story), fill = this.story.fill(node, scene.moments[this.place], resource);
    const hasName = this.gutter > 90 && height >= 11;
    const wide = this.gutter > 200 ? 58 : this.gutter > 120 ? 42 : this.gutter > 90 ? 34 : this.gutter - 14, x = this.gutter - wide - 8;
    const tall = Math.max(Math.min(height - 4, 12), 2), y = top + (height - tall) / 2;
    context.fillStyle = colours.gone;
    context.fillRect(x, y, wide, tall);
    const whole = Math.max(fill.offered, fill.all, 1);
    let left = x;
    for (let index = fill.byClass.length - 1; index >= 0; index -= 1) {
      const part = (fill.byClass[index] / whole) * wide;
      context.fillStyle = colours.priorities[shadeOf(index, fill.byClass.length)];
      context.fillRect(left, y, part, tall);
      left += part;
    }
    if (hasName) {
      this.drawName(context, row.name, fill, x, top + height / 2, height);
    }
  }

  drawName(context, full, fill, right, middle, height) {
    const { colours } = this, hasShare = this.gutter > 150 && height >= 13;
    const name = withoutEnd(full, this.shared), size = height >= 14 ? 12 : 10;
    const room = right - 14 - (hasShare ? 32 : 0);
    context.font = `${size}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    context.fillStyle = colours.ink;
    context.fillText(fitted(context, name, room, this.sharedStart), 8, middle + 0.5);
    if (hasShare) {
      const text = fill.offered ? percent(fill.all / fill.offered) : "";
      context.fillStyle = colours.faint;
      context.font = "11px system-ui, sans-serif";
      context.fillText(text, right - 4 - context.measureText(text).width, middle + 0.5);
    }
  }

  // What is at a place of the view: `{kind: "pod" | "node" | "wait" | "events" | "axis" | "none", ...}`.
  at(x, y) {
    const { axis } = this, share = Math.max(Math.min(axis.shareAt(x), 1), 0), moment = this.scene.momentOf(this.story, share);
    const found = { place: this.place, x, y, share, moment, pod: -1, node: -1, events: [] };
    if (y < TICKS) {
      return { ...found, kind: "axis" };
    }
    if (y < this.above) {
      const pod = x < this.gutter ? -1 : this.waiting.podAt(axis, x, y - TICKS);
      return { ...found, kind: pod < 0 ? "wait" : "pod", pod };
    }
    if (y >= this.below) {
      return { ...found, kind: "events", events: x < this.gutter ? [] : this.strip.eventsAt(axis, x, y - this.below) };
    }
    const place = Math.floor((y - this.above + this.scroll) / this.rowHeight), row = this.scene.rows[place];
    if (!row) {
      return { ...found, kind: "none" };
    }
    const node = row.nodes[this.place], inRow = y - this.above + this.scroll - place * this.rowHeight;
    const pod = x < this.gutter || node < 0 ? -1 : this.rows.podAt(axis, node, x, inRow, this.rowHeight);
    return { ...found, kind: pod < 0 ? "node" : "pod", node, pod, row: place, isLabel: x < this.gutter };
  }

  // Where the bar of a pod is in the view, waiting or on its node; null where none is drawn.
  placeOf(pod, waits = false) {
    const { axis } = this;
    if (waits) {
      const found = this.waiting.placeOf(axis, pod);
      return found && { ...found, top: found.top + TICKS };
    }
    const row = this.scene.rowOfName.get(this.story.nodeName(this.story.pods.node[pod]));
    if (row === undefined) {
      return null;
    }
    const top = this.above + row * this.rowHeight - this.scroll;
    if (top + this.rowHeight < this.above || top > this.below) {
      return null;
    }
    const found = this.rows.placeOf(axis, pod, this.rowHeight);
    const { pods } = this.story, left = axis.of(pods.scheduled[pod]), right = axis.of(pods.ended[pod]);
    return found ? { ...found, top: found.top + top } : { left, right, top: top + 2, height: this.rowHeight - 4 };
  }

  // Scrolls a row into sight.
  show(row) {
    const top = row * this.rowHeight, room = this.below - this.above;
    if (top < this.scroll || top + this.rowHeight > this.scroll + room) {
      this.element.scrollTop = Math.max(top - room / 2, 0);
    }
  }
}
