// What pointer and keys do in a view: hover shows details, a click selects, a drag along the axis moves time.

import { eventLine, few, nodeLines, podLines, rangeText } from "./descriptions.js";
import { element, fill } from "./dom.js";
import { counted, number } from "./formats.js";

const MOST_LINES = 18;

export class Pointer {
  constructor(scene, views, onkey) {
    this.scene = scene;
    this.views = views;
    this.tip = element("div", { className: "tip", role: "tooltip", hidden: true });
    document.body.append(this.tip);
    for (const view of views) {
      this.listen(view, onkey);
    }
  }

  listen(view, onkey) {
    const target = view.element;
    target.addEventListener("pointermove", (event) => this.move(view, event));
    target.addEventListener("pointerleave", () => this.leave());
    target.addEventListener("pointerdown", (event) => this.down(view, event));
    target.addEventListener("pointerup", () => {
      this.dragged = null;
    });
    target.addEventListener("click", (event) => this.click(view, event));
    target.addEventListener("dblclick", () => this.scene.set({ window: { from: 0, to: 1 } }));
    target.addEventListener("wheel", (event) => this.wheel(view, event), { passive: false });
    target.addEventListener("keydown", (event) => onkey(view, event));
  }

  where(view, event) {
    const box = view.element.getBoundingClientRect();
    return view.at(event.clientX - box.left, event.clientY - box.top);
  }

  move(view, event) {
    const hover = this.where(view, event);
    if (this.dragged === view) {
      this.scene.goToShare(hover.share);
      this.tip.hidden = true;
      return;
    }
    this.scene.set({ hover });
    view.element.style.cursor = hover.kind === "axis" ? "col-resize" : hover.pod >= 0 || hover.kind === "node" ? "pointer" : "default";
    this.describe(linesOf(this.scene, view, hover), event);
  }

  leave() {
    this.tip.hidden = true;
    this.scene.set({ hover: null });
  }

  down(view, event) {
    const at = this.where(view, event);
    if (at.kind === "axis" && event.button === 0) {
      this.dragged = view;
      view.element.setPointerCapture(event.pointerId);
      this.scene.goToShare(at.share);
    }
  }

  click(view, event) {
    const at = this.where(view, event), { story } = view;
    if (at.kind === "axis") {
      return;
    }
    if (at.kind === "events" && at.events.length) {
      this.scene.goTo(view.place, at.events[0]);
      const pod = story.events.pod[at.events[0]];
      this.scene.select(pod < 0 ? "" : "pod", pod < 0 ? "" : story.podName(pod));
    } else if (at.pod >= 0) {
      const kind = event.altKey || event.shiftKey ? "workload" : "pod";
      this.scene.select(kind, kind === "pod" ? story.podName(at.pod) : story.workloadName(at.pod));
    } else if (at.kind === "node" && at.row !== undefined) {
      this.scene.set({ row: at.row });
      this.scene.select("node", this.scene.rows[at.row].name);
    } else {
      this.scene.select("", "");
    }
  }

  wheel(view, event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.scene.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.where(view, event).share);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.scene.pan((event.deltaX || event.deltaY) / 600);
    }
  }

  describe(lines, event) {
    this.tip.hidden = !lines.length;
    if (!lines.length) {
      return;
    }
    const [title, ...rest] = lines;
    fill(this.tip, element("strong", {}, title), ...rest.slice(0, MOST_LINES).map((line) => element("div", {}, line)));
    const { width, height } = this.tip.getBoundingClientRect();
    const x = event.clientX + 16 + width > window.innerWidth ? event.clientX - width - 12 : event.clientX + 16;
    const y = event.clientY + 14 + height > window.innerHeight ? event.clientY - height - 10 : event.clientY + 14;
    this.tip.style.left = `${Math.max(x, 4)}px`;
    this.tip.style.top = `${Math.max(y, 4)}px`;
  }
}

// The details of what the pointer is on.
function linesOf(scene, view, hover) {
  const { story } = view, { moment } = hover;
  if (hover.pod >= 0) {
    return podLines(story, hover.pod, Math.max(moment, story.pods.created[hover.pod]));
  }
  if (hover.kind === "node") {
    return nodeLines(story, hover.node, hover.isLabel ? scene.moments[view.place] : moment, scene.resourceIn(story));
  }
  if (hover.kind === "events" && hover.events.length) {
    const lines = hover.events.slice(0, 8).map((event) => {
      const pod = story.events.pod[event], node = story.events.node[event];
      return `${pod < 0 ? story.nodeName(node) : story.podName(pod)} ${eventLine(story, event)}`;
    });
    const more = hover.events.length > 8 ? [`and ${number(hover.events.length - 8)} more`] : [];
    return [counted(hover.events.length, "event"), ...lines, ...more];
  }
  return hover.kind === "wait" ? waitLines(story, view.waiting, moment) : [];
}

function waitLines(story, waiting, moment) {
  const byClass = waiting.at(moment), all = byClass.reduce((sum, each) => sum + each, 0);
  if (!all) {
    return [];
  }
  const names = waiting.bars.filter((bar) => bar.from <= moment && moment < bar.until).slice(0, 200);
  return [
    `${counted(all, "pod")} wait`,
    ...story.classes.map((range, place) => [range, byClass[place]])
      .filter(([, count]) => count)
      .map(([range, count]) => `priority ${rangeText(range)}: ${number(count)}`),
    few(names.map((bar) => story.podName(bar.pod)), 3),
  ];
}
