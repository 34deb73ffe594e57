// The details of a selected pod, workload or node, with its events and those near it.

import { coloursOf } from "./colours.js";
import { detail, nodeLines, podLines } from "./descriptions.js";
import { element, fill } from "./dom.js";
import { duration, number } from "./formats.js";

const WIDE = 300;
const HIGH = 54;

// A small canvas: what is ready as an area, what is wanted as a line, time where it stands.
function sparkline(story, workload, scene) {
  const canvas = element("canvas", { className: "spark", role: "img" }), ratio = window.devicePixelRatio || 1;
  canvas.setAttribute("aria-label", `ready pods over time, ${workload.lowestReady} at the lowest of ${workload.wanted} wanted`);
  [canvas.width, canvas.height] = [WIDE * ratio, HIGH * ratio];
  canvas.style.width = `${WIDE}px`;
  canvas.style.height = `${HIGH}px`;
  const context = canvas.getContext("2d"), colours = coloursOf(scene.theme), { series } = workload;
  context.scale(ratio, ratio);
  const most = Math.max(...series.map((point) => Math.max(point.ready, point.wanted)), 1);
  const x = (time) => Math.min(Math.max(time / (scene.span || 1), 0), 1) * WIDE, y = (value) => HIGH - 2 - (value / most) * (HIGH - 8);
  series.forEach((point, place) => {
    const left = x(point.time), right = place + 1 < series.length ? x(series[place + 1].time) : WIDE;
    context.fillStyle = colours.priorities[2];
    context.fillRect(left, y(point.ready), Math.max(right - left, 1), HIGH - y(point.ready));
    context.fillStyle = point.ready < point.wanted ? colours.disrupted : colours.ink;
    context.fillRect(left, y(point.wanted) - 1, Math.max(right - left, 1), 1.5);
  });
  context.fillStyle = colours.cursor;
  context.fillRect(x(scene.time), 0, 1, HIGH);
  return canvas;
}

const MOST_EVENTS = 60;
const MOST_PODS = 40;

export class Details {
  constructor(scene) {
    this.scene = scene;
    // What others add about the selection.
    this.beside = element("div", {});
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
        "and it is described here. Shift-click a pod for its workload."));
      return;
    }
    const parts = scene.stories.map((story, place) => this.about(story, place, selection));
    const close = element("button", { type: "button", onclick: () => scene.select("", "") }, "✕");
    close.setAttribute("aria-label", "Let go of the selection");
    fill(this.element, element("header", {}, element("h2", {}, selection.name), close), ...parts, this.beside);
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
    const workload = story.workloadOf.get(name), lines = [];
    const onNode = found.pods.filter((pod) => story.isOnNode(pod, moment)).length;
    const waits = found.pods.filter((pod) => story.isWaiting(pod, moment)).length;
    lines.push(`at this moment ${number(onNode)} on nodes, ${number(waits)} waiting`);
    if (workload) {
      lines.push(`ready: ${workload.readyBefore} before, ${workload.lowestReady} at the lowest, ${workload.ready} at the end, of ${workload.wanted} wanted`);
      lines.push(`below what it wants for ${duration(workload.shortSeconds)}; its pods waited ${duration(workload.pendingSeconds)} in all`);
    }
    const drawn = workload ? sparkline(story, workload, this.scene) : null;
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
      element("button", { type: "button", className: "link", onclick: () => this.scene.goTo(place, event) }, story.when(story.times[event])),
      ` ${story.reason(event)}${detail(story, event)}`));
    if (events.length > MOST_EVENTS) {
      rows.push(element("li", { className: "faint" }, `and ${number(events.length - MOST_EVENTS)} more`));
    }
    return element("ol", {}, ...rows);
  }
}
