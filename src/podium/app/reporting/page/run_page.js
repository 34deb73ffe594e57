// A page about runs: controls, runs side by side, the slider of time, events and details.

import { coloursOf, shadeOf } from "./colours.js";
import { rangeText, standing } from "./descriptions.js";
import { Details } from "./details.js";
import { button, choice, element, fill } from "./dom.js";
import { EventList } from "./events.js";
import { number, sharedEnd } from "./formats.js";
import { Scene } from "./page_state.js";
import { Rows, Waiting } from "./pod_bars.js";
import { Pointer } from "./pointer.js";
import { RunTimeline } from "./run.js";
import { Search } from "./tables.js";
import { Strip, View } from "./view.js";

const KEYS = [
  ["← →", "the event before, the next one; with Shift ten of them"],
  ["Home End", "the beginning, the end"],
  ["↑ ↓", "the node above, below"],
  ["Enter", "select the node, or let go of it"],
  ["i o 0", "zoom in, out, show all of the time; the wheel with Ctrl, too"],
  ["[ ]", "show what was before, what comes next; the wheel with Shift, too"],
  ["+ −", "higher, lower rows"],
  ["t", "the axis by time, or by order of events"],
  ["/", "search"],
  ["p", "play"],
  ["d", "light or dark"],
  ["Esc", "nothing is selected"],
  ["?", "these keys"],
];

// Does what a key stands for; whether it stands for anything.
function press(page, view, event) {
  const { scene } = page, far = event.shiftKey ? 10 : 1, at = scene.moments[view.place];
  const actions = {
    ArrowLeft: () => scene.goTo(view.place, at - far),
    ArrowRight: () => scene.goTo(view.place, at + far),
    Home: () => scene.goTo(view.place, -1),
    End: () => scene.goTo(view.place, view.story.eventCount - 1),
    ArrowUp: () => toRow(scene, view, scene.row - 1),
    ArrowDown: () => toRow(scene, view, scene.row + 1),
    Enter: () => scene.rows[scene.row] && scene.select("node", scene.rows[scene.row].name),
    i: () => scene.zoom(0.5, scene.cursorShare(view.place)),
    o: () => scene.zoom(2, scene.cursorShare(view.place)),
    "[": () => scene.pan(-0.5),
    "]": () => scene.pan(0.5),
    0: () => scene.set({ window: { from: 0, to: 1 } }),
  };
  return run(actions, event) || pressAnywhere(page, event);
}

// Keys that hold wherever the focus is.
function pressAnywhere(page, event) {
  const actions = {
    "+": () => page.resize(1.4),
    "=": () => page.resize(1.4),
    "-": () => page.resize(1 / 1.4),
    t: () => page.turnAxis(),
    "/": () => page.search.focus(),
    p: () => page.play(),
    d: () => page.turnTheme(),
    Escape: () => page.scene.select("", ""),
    "?": () => page.help.showModal(),
  };
  return run(actions, event);
}

function run(actions, event) {
  const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
  if (!action) {
    return false;
  }
  event.preventDefault();
  event.stopPropagation();
  action();
  return true;
}

function toRow(scene, view, row) {
  const bounded = Math.max(Math.min(row, scene.rows.length - 1), 0);
  scene.set({ row: bounded });
  view.show(bounded);
}

// The list of keys, as a dialog.
function helpDialog() {
  const rows = KEYS.map(([keys, what]) => element("tr", {}, element("th", {}, keys), element("td", {}, what)));
  const close = element("button", { type: "button" }, "Close");
  const dialog = element("dialog", { className: "help" }, element("h2", {}, "Keys"), element("table", {}, ...rows), close);
  close.addEventListener("click", () => dialog.close());
  return dialog;
}

const ORDERS = [["name", "by name"], ["busy", "busiest first"], ["zone", "by zone"], ["fullest", "fullest first"]];
const TICK_MS = 60;
const PLAY_STEPS = 200;
const PAPER_HEIGHT = 2400;

// `before` is a page in whose place this one comes, with the same runs further on or others: what is selected, where
// time stands and how it is drawn stays. Time that stood at the end stays at the end.
export class StoryPage {
  constructor(stories, theme, before = null) {
    this.scene = new Scene(stories.map((data) => (data instanceof RunTimeline ? data : new RunTimeline(data))));
    const { scene } = this;
    this.scrollTop = before ? before.views[0].element.scrollTop : 0;
    if (before) {
      scene.follow(before.scene);
    }
    this.theme = theme;
    scene.theme = theme.name;
    this.themed = (name) => scene.set({ theme: name });
    theme.on(this.themed);
    this.views = scene.stories.map((_, place) => new View(scene, place));
    this.search = new Search("pods, workloads, nodes", () => scene.things(), (kind, name) => {
      scene.set({ selection: { kind, name } });
      this.find(kind, name);
    });
    this.help = helpDialog();
    this.pointer = new Pointer(scene, this.views, (view, event) => press(this, view, event));
    this.details = new Details(scene);
    this.slider = element("input", { type: "range", min: 0, max: 1, step: "any", className: "time", "aria-label": "Time" });
    this.slider.addEventListener("input", () => this.slide(Number(this.slider.value)));
    this.clock = element("output", { className: "clock", "aria-live": "polite" });
    this.legend = element("div", { className: "legend" });
    this.element = this.build();
    scene.on((changed) => this.changed(changed));
    this.views.forEach((view, place) => {
      view.onscroll = (top) => this.views.forEach((other, at) => {
        if (at !== place && other.element.scrollTop !== top) {
          other.element.scrollTop = top;
        }
      });
    });
    this.keys = (event) => {
      if (!event.target.closest("input, select, textarea, dialog, [contenteditable]")) {
        pressAnywhere(this, event);
      }
    };
    document.addEventListener("keydown", this.keys);
    this.fit();
    this.observer = new ResizeObserver(() => scene.set({ size: true }));
    this.observer.observe(this.stories);
  }

  // Draws all, once the page's elements are in the document.
  start() {
    this.scene.set({ size: true });
    this.scene.flush();
    if (this.scrollTop) {
      this.views[0].element.scrollTop = this.scrollTop;
      this.scrollTop = 0;
    }
  }

  // Draws as many rows as a few sheets have room for, and leaves that as it is while it is printed.
  toPaper() {
    const wanted = Math.max(...this.views.map((view) => view.wanted(view.rowHeight)));
    this.views.forEach((view) => {
      view.element.style.height = `${Math.ceil(Math.min(wanted, PAPER_HEIGHT))}px`;
    });
    this.scene.isFrozen = false;
    this.start();
    this.scene.isFrozen = true;
  }

  toScreen() {
    this.scene.isFrozen = false;
    this.fit();
    this.start();
  }

  // Lets go of what outlives the page's elements.
  dispose() {
    this.stop();
    this.theme.off(this.themed);
    document.removeEventListener("keydown", this.keys);
    this.observer.disconnect();
    this.pointer.tip.remove();
    this.scene.dispose();
  }

  // Gives the views the height that all rows need, up to what a window has room for.
  fit() {
    const { scene } = this;
    scene.waitingHeight = Math.max(...this.views.map((view) => view.waiting.height));
    scene.fittingHeight = Math.min(...this.views.map((view) => view.fit()));
    const wanted = Math.max(...this.views.map((view) => view.wanted(scene.rowHeight || scene.fittingHeight)));
    this.views.forEach((view) => {
      view.element.style.height = `min(max(62vh, 340px), 900px, ${Math.ceil(wanted)}px)`;
    });
  }

  build() {
    const { scene } = this, [story] = scene.stories;
    this.playing = button("▶ Play", "Let time run (p)", () => this.play());
    this.turn = button("", "The axis by time, or by order of events (t)", () => this.turnAxis());
    const controls = element("div", { className: "controls" },
      this.search.element,
      choice("fill", story.resources.map((name) => [name, name]), scene.resource, (resource) => scene.set({ resource })),
      choice("nodes", ORDERS, scene.order, (order) => scene.sort(order)),
      this.turn,
      element("span", { className: "group" },
        button("−", "Lower rows (-)", () => this.resize(1 / 1.4)), button("+", "Higher rows (+)", () => this.resize(1.4))),
      element("span", { className: "group" },
        button("⊖", "Zoom out (o)", () => scene.zoom(2, scene.cursorShare(0))),
        button("⊕", "Zoom in on where time stands (i)", () => scene.zoom(0.5, scene.cursorShare(0))),
        button("all", "All of the time (0)", () => scene.set({ window: { from: 0, to: 1 } }))),
      button("Keys", "What the keys do (?)", () => this.help.showModal()));
    this.stories = element("div", { className: `stories of-${this.views.length}` }, ...this.views.map((view) => element("figure", {},
      view.story.name ? element("figcaption", {}, view.story.name) : null, view.element)));
    this.list = new EventList(scene);
    return element("div", { className: "story" }, controls, this.legend, this.stories,
      element("div", { className: "scrub" }, this.playing, this.slider, this.clock),
      element("div", { className: "below" }, this.list.element, this.details.element),
      this.help);
  }

  // Shows other stories of the same places, as for a cluster that changes. What is selected
  // stays, and time, where it stood at the end, stands at the new end.
  replace(datas) {
    const { scene } = this, isAtEnd = scene.time >= scene.end, { resource } = scene;
    scene.stories = datas.map((data) => new RunTimeline(data));
    scene.resource = scene.stories.some((story) => story.resources.includes(resource)) ? resource : scene.stories[0].resources[0];
    this.views.forEach((view, place) => {
      const story = scene.stories[place];
      Object.assign(view, { story, rows: new Rows(story), waiting: new Waiting(story), strip: new Strip(story) });
    });
    this.search.known = null;
    this.lengthen(Math.max(...scene.stories.map((story) => story.end)), isAtEnd);
    scene.sort(scene.order);
    this.list.show(this.list.place);
    this.list.choose();
    this.fit();
    this.drawLegend();
  }

  // Time has passed, and nothing has happened.
  lengthen(end, isAtEnd = this.scene.time >= this.scene.end) {
    const { scene } = this;
    scene.stories.forEach((story) => {
      story.end = end;
    });
    const time = isAtEnd ? end : Math.min(scene.time, end);
    scene.set({ end, span: end, time, moments: scene.stories.map((story) => story.momentAt(time)), size: true });
  }

  changed(changed) {
    const { scene } = this;
    if (["theme", "axis", "size", "rowHeight"].some((name) => changed.has(name))) {
      this.drawLegend();
      this.turn.textContent = scene.axis === "time" ? "axis: time" : "axis: order";
    }
    if (changed.has("moments") || changed.has("axis") || changed.has("size")) {
      const share = scene.axis === "time" ? scene.time / scene.end : (scene.moments[0] + 1) / Math.max(scene.stories[0].eventCount, 1);
      this.slider.value = share;
      const states = scene.stories.map((story, place) => `${story.name ? `${story.name}: ` : ""}${standing(story, scene.moments[place])}`);
      const order = scene.axis === "order" ? `, event ${number(scene.moments[0] + 1)} of ${number(scene.stories[0].eventCount)}` : "";
      fill(this.clock, element("strong", {}, `${scene.stories[0].when(scene.time)}${order}`), ` ${states.join(" · ")}`);
      this.slider.setAttribute("aria-valuetext", this.clock.textContent);
    }
  }

  drawLegend() {
    const { scene } = this, colours = coloursOf(scene.theme), [story] = scene.stories;
    const swatches = story.classes.map((range, place) => {
      const mark = element("i", { className: "swatch" });
      mark.style.background = colours.priorities[shadeOf(place, story.classes.length)];
      return element("span", {}, mark, rangeText(range));
    });
    const end = sharedEnd(scene.rows.map((row) => row.name));
    fill(this.legend, element("span", { className: "faint" }, "priority"), ...swatches,
      element("span", {}, element("i", { className: "swatch grace" }), "being deleted"),
      element("span", {}, element("i", { className: "cross" }, "✕"), "disrupted"),
      scene.stories.some((each) => each.holdsOf.size)
        ? element("span", {}, element("i", { className: "swatch held" }), "was to go, and is held") : null,
      element("span", {}, element("i", { className: "swatch starting" }), "starting"),
      element("span", {}, element("i", { className: "swatch gone" }), "node down or not there"),
      this.views[0].isHeat ? element("span", { className: "faint" }, "low rows: the stronger, the fuller") : null,
      end ? element("span", { className: "faint" }, `nodes end in ${end}`) : null);
  }

  // Shows what was found: on a node, its row.
  find(kind, name) {
    this.views.forEach((view) => {
      const found = view.story.find({ kind, name });
      const node = kind === "node" ? name : view.story.nodeName(found.pods.length ? view.story.pods.node[found.pods[0]] : -1);
      const row = this.scene.rowOfName.get(node);
      if (row !== undefined) {
        this.scene.set({ row });
        view.show(row);
      }
    });
  }

  select(kind, name) {
    this.scene.select(kind, name);
    if (this.scene.selection) {
      this.find(kind, name);
    }
  }

  resize(factor) {
    const [view] = this.views, at = view.scroll / view.rowHeight;
    const rowHeight = Math.min(Math.max(view.rowHeight * factor, 2), 400);
    this.scene.set({ rowHeight });
    this.fit();
    this.scene.flush();
    this.views.forEach((each) => {
      each.element.scrollTop = at * rowHeight;
    });
  }

  turnAxis() {
    const axis = this.scene.axis === "time" ? "order" : "time";
    if (axis === "order" || this.scene.end) {
      this.scene.set({ axis, window: { from: 0, to: 1 }, moments: this.scene.moments });
    }
  }

  turnTheme() {
    this.theme.turn();
  }

  // Time stands at a share of the run, which is less than that of the axis.
  slide(share) {
    const { scene } = this;
    scene.goToShare(scene.axis === "time" ? (share * scene.end) / scene.span : share);
  }

  // Lets time run from where it stands, or from the beginning; or stops it.
  play() {
    const { scene } = this;
    if (this.timer) {
      this.stop();
      return;
    }
    let share = Number(this.slider.value) >= 1 ? 0 : Number(this.slider.value);
    this.playing.textContent = "❚❚ Pause";
    this.timer = setInterval(() => {
      share += 1 / PLAY_STEPS;
      this.slide(share);
      if (share >= 1) {
        this.stop();
      }
    }, TICK_MS);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.playing.textContent = "▶ Play";
  }
}

export class Compared {
  constructor(data, theme) {
    this.theme = theme;
    this.stories = data.map((each) => new RunTimeline(each));
    const priorities = this.stories.flatMap((story) => [...new Set(story.pods.priority)]);
    this.stories.forEach((story) => story.classify(priorities));
    this.shown = [0, Math.min(1, this.stories.length - 1)];
    this.holder = element("div");
    this.element = this.holder;
    if (this.stories.length > 2) {
      const options = this.stories.map((story, place) => [String(place), story.name]);
      const sides = ["left", "right"].map((side, at) =>
        choice(side, options, String(this.shown[at]), (value) => {
          this.shown[at] = Number(value);
          this.draw();
        }));
      this.element = element("div", {}, element("div", { className: "controls" }, ...sides), this.holder);
    }
    this.draw();
  }

  // Lets go of what outlives the page's elements.
  dispose() {
    this.page.dispose();
  }

  draw() {
    const before = this.page, different = [...new Set(this.shown)];
    this.page = new StoryPage(different.map((place) => this.stories[place]), this.theme, before);
    before?.dispose();
    fill(this.holder, this.page.element);
    if (this.holder.isConnected) {
      this.page.start();
    }
  }
}
