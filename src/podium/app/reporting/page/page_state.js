// The state that all parts of a page about runs share: runs, moment, selection, and how they are drawn.

import { NATURAL } from "./formats.js";

const BUSY = new Set(["Preempted", "Evicted", "Killing", "NodeDown", "NodeUp", "NodeAdded", "NodeRemoved", "Failed"]);
const BEYOND = 0.05;

export class Scene {
  constructor(stories) {
    this.stories = stories;
    this.end = Math.max(...stories.map((story) => story.end), 0);
    // The axis goes on a little where much happens at the end, so that it can be seen how that leaves things.
    const last = Math.max(...stories.map((story) => story.times.at(-1) ?? 0), 0);
    this.span = last > this.end * (1 - BEYOND) ? this.end * (1 + BEYOND) : this.end;
    // By "time", or by "order" of events, which shows what happens at one instant.
    this.axis = stories.some((story) => story.times.length && story.times.at(-1) > 0) ? "time" : "order";
    // The part of the axis that is shown, as shares of it.
    this.window = { from: 0, to: 1 };
    this.time = this.end;
    this.moments = stories.map((story) => story.eventCount - 1);
    this.selection = null;
    this.hover = null;
    this.resource = stories.length ? stories[0].resources[0] : "cpu";
    this.theme = "light";
    this.rowHeight = 0;
    this.row = -1;
    // While it is printed, what is drawn stays.
    this.isFrozen = false;
    this.listeners = [];
    this.pending = new Set();
    this.rows = [];
    this.sort(this.allNames().length > 60 ? "busy" : "name");
  }

  // Calls back after changes, once a frame, with the names of what changed.
  on(listener) {
    this.listeners.push(listener);
  }

  // Removes all listeners.
  dispose() {
    cancelAnimationFrame(this.frame);
    this.listeners = [];
  }

  // Takes over from another scene what is selected, how it is drawn, and where time stands.
  follow(before) {
    const { selection, resource, theme, rowHeight, window } = before;
    Object.assign(this, { selection, resource, theme, rowHeight, window });
    this.axis = this.axis === "order" ? "order" : before.axis;
    this.sort(before.order);
    const wasAtEnd = before.stories.every((story, place) => before.moments[place] >= story.eventCount - 1);
    if (!wasAtEnd && this.axis === "time") {
      this.time = Math.min(before.time, this.end);
      this.moments = this.stories.map((story) => story.momentAt(this.time));
    }
  }

  // Records changes, and notifies the listeners with the next frame.
  set(changes) {
    for (const [name, value] of Object.entries(changes)) {
      this[name] = value;
      this.pending.add(name);
    }
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => this.flush());
    }
  }

  // Tells of changes now.
  flush() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const changed = this.pending;
    this.pending = new Set();
    for (const listener of this.listeners) {
      listener(changed);
    }
  }

  allNames() {
    return [...new Set(this.stories.flatMap((story) => story.nodes.name.map((word) => story.words[word])))];
  }

  // All that has a name, as `[kind, name]`, each once.
  things() {
    const found = new Map();
    const add = (kind, name) => found.set(`${kind} ${name}`, [kind, name]);
    for (const story of this.stories) {
      story.nodes.name.forEach((word) => add("node", story.words[word]));
      new Set(story.pods.workload).forEach((word) => !story.word(word).startsWith("Pod ") && add("workload", story.word(word)));
      story.pods.name.forEach((word) => add("pod", story.words[word]));
    }
    return [...found.values()];
  }

  resourceIn(story) {
    return Math.max(story.resources.indexOf(this.resource), 0);
  }

  // Orders the rows, one for each node of any story: by "name", "busy" first, by "zone", or the "fullest" first.
  sort(order) {
    this.order = order;
    const names = this.allNames();
    const keys = new Map(names.map((name) => [name, this.keyOf(name, order)]));
    names.sort((left, right) => {
      const [first, second] = [keys.get(left), keys.get(right)];
      const before = typeof first === "string" ? NATURAL.compare(first, second) : second - first;
      return before || NATURAL.compare(left, right);
    });
    this.rows = names.map((name) => ({ name, nodes: this.stories.map((story) => story.nodeOfName.get(name) ?? -1) }));
    this.rowOfName = new Map(this.rows.map((row, place) => [row.name, place]));
    this.set({ rows: this.rows });
  }

  keyOf(name, order) {
    let key = order === "zone" ? "" : 0;
    this.stories.forEach((story, place) => {
      const node = story.nodeOfName.get(name);
      if (node === undefined) {
        return;
      }
      if (order === "zone") {
        key = key || story.word(story.nodes.zone[node]);
      } else if (order === "busy") {
        for (const event of story.eventsOfNode.of(node)) {
          key += BUSY.has(story.reason(event));
        }
      } else if (order === "fullest") {
        const fill = story.fill(node, this.moments[place], this.resourceIn(story));
        key = Math.max(key, fill.offered ? fill.all / fill.offered : 0);
      }
    });
    return key;
  }

  // Time stands at a moment of one story; the others follow by time.
  goTo(place, moment) {
    const story = this.stories[place];
    const bounded = Math.max(Math.min(moment, story.eventCount - 1), -1);
    const time = story.timeOf(bounded);
    const moments = this.stories.map((other, at) => (at === place ? bounded : this.beside(other, story, bounded)));
    this.set({ moments, time });
    this.keepInSight(place);
  }

  beside(other, story, moment) {
    if (this.axis === "time") {
      return other.momentAt(story.timeOf(moment));
    }
    return story.eventCount ? Math.round(((moment + 1) / story.eventCount) * other.eventCount) - 1 : other.eventCount - 1;
  }

  // Time stands at a share of the whole axis.
  goToShare(share) {
    const bounded = Math.max(Math.min(share, 1), 0);
    if (this.axis === "time") {
      const time = Math.min(bounded * this.span, this.end);
      this.set({ time, moments: this.stories.map((story) => story.momentAt(time)) });
      this.keepInSight(0);
    } else {
      this.goTo(0, Math.round(bounded * this.stories[0].eventCount) - 1);
    }
  }

  // Where a moment of a story is on the axis, as a share of it.
  shareOf(story, moment) {
    if (this.axis === "time") {
      return moment === Infinity ? 1 : story.timeOf(moment) / this.span;
    }
    const places = story.eventCount + 1;
    return moment === Infinity ? 1 : (moment + 1) / places;
  }

  // The moment at a share of the axis.
  momentOf(story, share) {
    if (this.axis === "time") {
      return story.momentAt(share * this.span);
    }
    return Math.max(Math.min(Math.floor(share * (story.eventCount + 1)) - 1, story.eventCount - 1), -1);
  }

  // Where time stands, as a share of the axis.
  cursorShare(place) {
    if (this.axis === "time") {
      return this.time / this.span;
    }
    return (this.moments[place] + 1.5) / (this.stories[place].eventCount + 1);
  }

  // Shows a part of the axis, so many times as long as now, around a share of it.
  zoom(factor, around) {
    const { from, to } = this.window;
    const length = Math.min(Math.max((to - from) * factor, 1e-5), 1);
    const start = Math.min(Math.max(around - ((around - from) / (to - from)) * length, 0), 1 - length);
    this.set({ window: { from: start, to: start + length } });
  }

  // Shows a part of the axis that is later by so much of what is shown, or earlier.
  pan(by) {
    const { from, to } = this.window, length = to - from;
    const start = Math.min(Math.max(from + by * length, 0), 1 - length);
    this.set({ window: { from: start, to: start + length } });
  }

  // Where only a part of the axis is shown, it goes along with time.
  keepInSight(place) {
    const share = this.cursorShare(place), { from, to } = this.window;
    if (share < from || share > to) {
      this.pan((share - (from + to) / 2) / (to - from));
    }
  }

  select(kind, name) {
    const is_same = this.selection && this.selection.kind === kind && this.selection.name === name;
    this.set({ selection: is_same || !kind ? null : { kind, name } });
  }
}
