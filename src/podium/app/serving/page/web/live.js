// The cluster as it changes: the drawing of a run, of which the end is always now.

import { button, element, fill } from "./drawing/dom.js";
import { counted } from "./drawing/formats.js";
import { StoryPage } from "./drawing/run_page.js";
import { Follower } from "./api.js";
import { Described } from "./described.js";
import { History, columnsOf, nodeOf, podOf } from "./history.js";

const TOLD_MS = 200;
const LEAST_MS = 500;
const LONGEST_MS = 10000;
// So many times as long as drawing took is left to everything else.
const SHARE = 8;
const QUIET_MS = 1000;

export class LiveTab {
  constructor(page) {
    this.page = page;
    this.history = new History(page.now());
    this.state = element("span", { className: "state", role: "status" });
    this.links = element("div", { className: "links" });
    this.offer(null);
    this.empty = element("p", { className: "hint" }, "There are no nodes yet.");
    this.element = element("div", { className: "live" }, this.links, this.empty);
    this.isShown = false;
    // Other parts of the page that need the nodes and pods, and how often these have changed.
    this.needs = new Set();
    this.changes = 0;
    this.tookMs = 0;
    this.isStale = true;
    this.nodes = this.follower("/ui/watch/nodes", nodeOf, (changes, isFirst) => this.history.takeNodes(changes, page.now(), isFirst));
    this.pods = this.follower("/ui/watch/pods", podOf, (changes, isFirst) => this.history.takePods(changes, page.now(), isFirst));
  }

  // Gets to know the nodes and pods, which takes long for many; what is shown first comes before that.
  begin() {
    this.nodes.start();
    this.pods.start();
  }

  follower(path, read, take) {
    const made = new Follower(this.page.server, path, {
      read,
      resumes: this.page.about.mode === "control-plane",
      onChanges: (changes) => {
        take(changes, !made.isSynced);
        this.isStale = true;
        this.changes += 1;
        this.tellSoon();
      },
      onState: () => {
        this.tellSoon();
        this.needs.forEach((part) => part.tick());
        this.rest();
      },
    });
    return made;
  }

  show() {
    this.isShown = true;
    this.tellSoon();
    this.listen(true);
    this.begin();
    this.tick();
  }

  hide() {
    this.isShown = false;
    this.story?.pointer.leave();
    this.listen(false);
    this.tellSoon();
    clearTimeout(this.timer);
    this.rest();
  }

  // The page is hidden, or visible again.
  pause() {
    this.hide();
  }

  resume() {
    this.show();
  }

  // Its keys hold while it is shown, and for the part that is shown alone.
  listen(does) {
    if (this.story) {
      document.removeEventListener("keydown", this.story.keys);
      if (does) {
        document.addEventListener("keydown", this.story.keys);
      }
    }
  }

  // Keeps up with nodes and pods for another part of the page, or no longer.
  watchFor(part, does) {
    this.needs[does ? "add" : "delete"](part);
    if (does) {
      this.begin();
    }
    this.rest();
  }

  // Nobody looks: once all is known there is no need to keep up.
  rest() {
    if (!this.isShown && !this.needs.size && this.nodes.isSynced && this.pods.isSynced) {
      this.nodes.stop();
      this.pods.stop();
    }
  }

  // Changes are shown a few times a second.
  tellSoon() {
    if (!this.telling) {
      this.telling = setTimeout(() => {
        this.telling = 0;
        this.report();
      }, TOLD_MS);
    }
  }

  // The state of the cluster; nothing if it is not watched.
  report() {
    if (!this.isShown) {
      this.state.textContent = "";
      return;
    }
    const problem = [this.nodes.state, this.pods.state].find((state) => state && state !== "live" && state !== "connecting");
    if (problem) {
      this.state.textContent = problem;
    } else if (!this.nodes.isSynced || !this.pods.isSynced) {
      this.state.textContent = `reading: ${counted(this.nodes.known.size, "node")}, ${counted(this.pods.known.size, "pod")}`;
    } else {
      const pods = [...this.pods.known.values()], waiting = pods.filter((pod) => !pod.node && pod.phase === "Pending").length;
      const wait = waiting ? `, ${counted(waiting, "pod")} waiting` : "";
      this.state.textContent = `${counted(this.nodes.known.size, "node")}, ${counted(pods.length, "pod")}${wait}`;
    }
    this.state.classList.toggle("bad", Boolean(problem));
  }

  // Draws what has changed, and lets time pass; not more often than there is time for.
  tick() {
    clearTimeout(this.timer);
    if (!this.isShown) {
      return;
    }
    const began = performance.now();
    if (this.nodes.isSynced && this.pods.isSynced) {
      this.draw();
    }
    this.tookMs = performance.now() - began;
    const quiet = this.isStale ? LEAST_MS : QUIET_MS;
    this.timer = setTimeout(() => this.tick(), Math.min(Math.max(quiet, this.tookMs * SHARE), LONGEST_MS));
  }

  draw() {
    const now = this.page.now();
    this.history.forget(now);
    this.empty.hidden = this.history.nodes.size > 0;
    if (!this.history.nodes.size) {
      return;
    }
    if (!this.story) {
      this.story = new StoryPage([columnsOf(this.history, now)], this.page.theme);
      const { scene } = this.story;
      scene.set({ axis: "time", size: true });
      scene.on((changed) => changed.has("selection") && this.offer(scene.selection));
      this.described = new Described(this.page);
      fill(this.story.details.beside, this.described.element);
      this.element.append(this.story.element);
      scene.flush();
    } else if (this.isStale) {
      this.story.replace([columnsOf(this.history, now)]);
    } else {
      this.story.lengthen((now - this.history.began) / 1000);
    }
    this.isStale = false;
  }

  // What can be done with what is selected.
  offer(selection) {
    const { page } = this;
    this.described?.show(selection && { pod: "Pod", node: "Node" }[selection.kind], selection?.name);
    if (!selection) {
      fill(this.links, element("span", { className: "hint" },
        "What happens from when this page was opened on. Select a pod or a node to explain it, to open it, or to ask what if."));
      return;
    }
    const [namespace, name] = selection.name.includes("/") ? selection.name.replace(/^\w+ /, "").split("/") : ["", selection.name];
    const isObject = page.about.mode === "control-plane" && selection.kind !== "workload";
    const target = selection.kind === "pod" ? selection.name : selection.kind === "workload" ? targetOf(selection.name) : "";
    fill(this.links, element("strong", {}, selection.name),
      target ? button("Explain", "Why it is there, or not", () => page.explain(target)) : null,
      isObject ? button("Open", "Its YAML", () => page.go("objects", `${selection.kind}s`, namespace || "-", name)) : null,
      selection.kind === "node" ? button("What if it is drained?", "podium plan drain", () => page.go("plans", "drain", JSON.stringify({ nodes: name }))) : null,
      selection.kind === "node" ? button("What if it fails?", "podium plan fail", () => page.go("plans", "fail", JSON.stringify({ nodes: name }))) : null);
  }

  // Names of what is there, where one is to be named.
  suggest(what) {
    const nodes = [...this.nodes.known.values()].map((node) => node.name).sort();
    if (what === "nodes") {
      return nodes;
    }
    const pods = [...this.pods.known.values()];
    const workloads = [...new Set(pods.map((pod) => pod.workload))].filter((name) => !name.startsWith("Pod ")).map(targetOf);
    return [...workloads.sort(), ...pods.map((pod) => pod.name).sort()];
  }
}

// A workload as commands name it: `Deployment shop/web` is `deployment/shop/web`.
export function targetOf(label) {
  const [kind, key] = label.split(" ");
  return kind === "Pod" ? key : `${kind.toLowerCase()}/${key}`;
}
