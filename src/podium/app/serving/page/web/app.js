// The live page: which part of it is shown, who is let in, and what its parts share.

import { Theme, button, element, fill } from "./drawing/dom.js";
import { Refusal, Server, readKinds } from "./api.js";
import { Changes } from "./changes.js";
import { GridTab } from "./grid.js";
import { LiveTab, targetOf } from "./live.js";
import { NowTab } from "./now.js";
import { ObjectsTab } from "./objects.js";
import { ExplainTab, PlansTab } from "./questions.js";

const AGAIN_MS = 1000;

// What all parts of the page share.
class Page {
  constructor(server, about) {
    Object.assign(this, { server, about, isReadOnly: about.readOnly });
    // Objects bear the times of the cluster, which may go faster than the clock.
    this.began = Date.now();
    this.theme = new Theme();
    this.changes = new Changes(server);
    this.cluster = null;
  }

  now() {
    return this.about.now + (Date.now() - this.began) * this.about.speed;
  }

  // The kinds that the server has; asked for once, and anew where that failed.
  kinds() {
    this.read = this.read || readKinds(this.server).catch((error) => {
      this.read = null;
      throw error;
    });
    return this.read;
  }

  // What may be meant where something of the cluster is to be named.
  suggest(what) {
    return this.cluster ? this.cluster.suggest(what) : [];
  }

  go(...parts) {
    location.hash = parts.map(encodeURIComponent).join("/");
  }

  // Asks a question of `podium plan` with its form filled in; the values may be too long for an address.
  askPlan(name, values) {
    this.plans.fillIn(name, values);
    this.go("plans", name);
  }

  // Colours the grid of nodes by what an answer says about them.
  showOnNodes(answer) {
    this.grid.take(answer);
    this.go("nodes");
  }

  targetOf(workload) {
    return targetOf(workload);
  }

  // Why pods wait, by name, of which the watch of pods does not say it.
  noteReasons(reasons) {
    this.cluster?.history.noteReasons(reasons);
  }

  explain(target, node = "") {
    this.go("explain", target, ...(node ? [node] : []));
  }

  openObject(kind, namespace, name) {
    this.go("objects", kind.group ? `${kind.plural}.${kind.group}` : kind.plural, namespace || "-", name);
  }
}

// A part of an address; one that is no text in such a form stands for nothing.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

// Asks the user for a token, which only this page keeps.
function askToken(root) {
  return (isWrong) => new Promise((resolve) => {
    const input = element("input", { type: "password", id: "token", name: "token", required: true });
    input.setAttribute("autocomplete", "current-password");
    const form = element("form", { className: "token form" },
      element("h1", {}, "Podium"),
      element("label", { for: "token" }, isWrong ? "This token is not taken. Another one:" : "This server asks for a token."),
      input, element("button", { type: "submit", className: "primary" }, "Come in"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      form.remove();
      resolve(input.value.trim());
    });
    root.append(form);
    input.focus();
  });
}

class App {
  constructor(page) {
    this.page = page;
    const live = new LiveTab(page);
    page.cluster = live;
    page.grid = new GridTab(page);
    const parts = [["now", "Now", new NowTab(page)], ["nodes", "Nodes", page.grid], ["cluster", "Cluster", live]];
    if (page.about.mode === "control-plane") {
      parts.push(["objects", "Objects", new ObjectsTab(page)]);
    }
    page.plans = new PlansTab(page);
    parts.push(["explain", "Explain", new ExplainTab(page)], ["plans", "What if", page.plans]);
    this.parts = new Map(parts.map(([name, , part]) => [name, part]));
    this.tabs = new Map(parts.map(([name, title]) => [name, element("a", { href: `#${name}` }, title)]));
    this.main = element("main", { tabIndex: -1 });
    const about = [page.about.title, page.isReadOnly ? "to look at" : ""].filter((each) => each).join(", ");
    this.element = element("div", { className: "app" },
      element("header", { className: "masthead" }, element("h1", {}, "Podium"), element("span", { className: "about" }, about),
        element("nav", { className: "tabs", "aria-label": "Parts of the page" }, ...this.tabs.values()),
        live.state, button("◐", "Light or dark", () => page.theme.turn())),
      this.main);
    window.addEventListener("hashchange", () => this.show());
    document.addEventListener("visibilitychange", () => this.look());
  }

  async show() {
    const [name, ...rest] = location.hash.slice(1).split("/").map(decoded);
    const chosen = this.parts.has(name) ? name : "now", part = this.parts.get(chosen);
    if (part !== this.shown) {
      this.shown?.hide();
      this.shown = part;
      for (const [each, tab] of this.tabs) {
        tab.setAttribute("aria-current", each === chosen ? "page" : "false");
      }
      fill(this.main, part.element);
      document.title = `Podium: ${this.tabs.get(chosen).textContent}`;
    }
    try {
      await part.show(rest);
    } catch (error) {
      this.main.prepend(element("p", { className: "failure" }, error.message));
      if (!(error instanceof Refusal)) {
        throw error;
      }
    }
  }

  // A hidden page holds no connections.
  look() {
    if (document.hidden) {
      this.shown?.pause?.();
    } else {
      this.shown?.resume?.();
    }
  }

}

// The content of the page; its server may not know it yet.
async function readAbout(server, root) {
  for (;;) {
    try {
      return await server.json("GET", "/ui/about");
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 503) {
        throw error;
      }
      fill(root, element("p", { className: "hint" }, error.message));
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

async function start() {
  const root = document.getElementById("page");
  const server = new Server();
  server.askToken = askToken(root);
  const about = await readAbout(server, root);
  const app = new App(new Page(server, about));
  fill(root, app.element);
  window.podium = app;
  await app.show();
  app.page.cluster.begin();
  document.documentElement.dataset.drawn = "true";
}

start().catch((error) => {
  document.getElementById("page").append(element("p", { className: "failure" }, `The page cannot be shown: ${error.message}`));
  throw error;
});
