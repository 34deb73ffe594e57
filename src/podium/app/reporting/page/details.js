// What there is to know of what is selected: a pod, a workload or a node; its events, and those near it.
import { duration, number, since } from "./formats.js";
import { element, fill } from "./dom.js";
import { sparkline } from "./sparkline.js";
import { detail, nodeLines, podLines } from "./told.js";

const MOST_EVENTS = 60;
const MOST_PODS = 40;

export class Details {
  constructor(scene) {
    this.scene = scene;
    this.element = element("aside", { className: "details", "aria-label": "What is selected", "aria-live": "polite" });
    scene.on((changed) => {
      if (["selection", "moments", "rows", "resource"].some((name) => changed.has(name))) {
        this.draw();
      }
    });
    this.draw();
  }

  draw() {
    const { scene } = this, { selection } = scene;
    if (!selection) {
      fill(this.element, element("p", { className: "faint" }, "Click a pod, a node or a row of a table: all else fades, ",
        "and this is where it is told of. Shift-click a pod for its workload."));
      return;
    }
    const parts = scene.stories.map((story, place) => this.about(story, place, selection));
    const close = element("button", { type: "button", onclick: () => scene.select("", "") }, "✕");
    close.setAttribute("aria-label", "Let go of the selection");
    fill(this.element, element("header", {}, element("h2", {}, selection.name), close), ...parts);
  }

  about(story, place, selection) {
    const found = story.find(selection), moment = this.scene.moments[place], part = element("section");
    if (this.scene.stories.length > 1) {
      part.append(element("h3", {}, story.name));
    }
    if (selection.kind === "node") {
      part.append(...this.node(story, found, moment));
    } else if (!found.pods.length) {
      part.append(element("p", { className: "faint" }, "is not in this run"));
    } else if (selection.kind === "pod") {
      found.pods.forEach((pod) => part.append(...this.pod(story, place, pod, moment)));
    } else {
      part.append(...this.workload(story, found, moment, selection.name));
    }
    return part;
  }

  lines(lines) {
    return lines.map((line) => element("p", {}, line));
  }

  pod(story, place, pod, moment) {
    const lines = podLines(story, pod, moment).slice(1), workload = story.workloadName(pod);
    const events = [...story.eventsOfPod.of(pod)];
    return [
      ...this.lines(lines),
      this.links([["workload", workload === `Pod ${story.podName(pod)}` ? "" : workload], ["node", story.nodeName(story.pods.node[pod])]]),
      this.eventList(story, place, events),
    ];
  }

  node(story, found, moment) {
    const resource = this.scene.resourceIn(story), lines = nodeLines(story, found.node, moment, resource);
    const here = found.pods.filter((pod) => story.isOnNode(pod, moment));
    here.sort((left, right) => story.pods.priority[right] - story.pods.priority[left] || left - right);
    return [...this.lines(lines.slice(1)), this.podList(story, here)];
  }

  workload(story, found, moment, name) {
    const told = story.workloadOf.get(name), lines = [];
    const onNode = found.pods.filter((pod) => story.isOnNode(pod, moment)).length;
    const waits = found.pods.filter((pod) => story.isWaiting(pod, moment)).length;
    lines.push(`at this moment ${number(onNode)} on nodes, ${number(waits)} waiting`);
    if (told) {
      lines.push(`ready: ${told.readyBefore} before, ${told.lowestReady} at the lowest, ${told.ready} at the end, of ${told.wanted} wanted`);
      lines.push(`below what it wants for ${duration(told.shortSeconds)}; its pods waited ${duration(told.pendingSeconds)} in all`);
    }
    const drawn = told ? sparkline(story, told, this.scene) : null;
    return [...this.lines(lines), ...(drawn ? [drawn] : []), this.podList(story, found.pods)];
  }

  links(pairs) {
    const buttons = pairs.filter(([, name]) => name).map(([kind, name]) =>
      element("button", { type: "button", className: "link", onclick: () => this.scene.select(kind, name) }, name));
    return element("p", {}, ...buttons);
  }

  podList(story, pods) {
    const rows = pods.slice(0, MOST_PODS).map((pod) => {
      const name = story.podName(pod);
      return element("li", {}, element("button", { type: "button", className: "link", onclick: () => this.scene.select("pod", name) }, name),
        ` ${number(story.pods.priority[pod])}`);
    });
    if (pods.length > MOST_PODS) {
      rows.push(element("li", { className: "faint" }, `and ${number(pods.length - MOST_PODS)} more`));
    }
    return element("ul", {}, ...rows);
  }

  eventList(story, place, events) {
    const rows = events.slice(0, MOST_EVENTS).map((event) => element("li", {},
      element("button", { type: "button", className: "link", onclick: () => this.scene.goTo(place, event) }, since(story.times[event])),
      ` ${story.reason(event)}${detail(story, event)}`));
    if (events.length > MOST_EVENTS) {
      rows.push(element("li", { className: "faint" }, `and ${number(events.length - MOST_EVENTS)} more`));
    }
    return element("ol", {}, ...rows);
  }
}
