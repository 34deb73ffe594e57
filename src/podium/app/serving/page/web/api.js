// Requests to the server: objects by the API, kinds by discovery, and the page's own requests.

import { number } from "./drawing/formats.js";

const PAGE = "Podium-Page";
const WARNING = /\d{3} - "((?:[^"\\]|\\.)*)"/g;
const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30000;
const INITIAL_END = "k8s.io/initial-events-end";
const MANAGER = "podium-page";

export const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
export const YAML = "application/yaml";

// A refusal: the code, what is said, and which fields are meant.
export class Refusal extends Error {
  constructor(code, reason, message, causes = []) {
    super(message);
    Object.assign(this, { code, reason, causes });
  }
}

export class Server {
  constructor() {
    // It is kept nowhere else, and ends with the page.
    this.token = "";
    // Asks the user for a token; returns a promise of it.
    this.askToken = null;
    this.asking = null;
  }

  // The reply to a request: its text, and the warnings that came with it.
  async ask(method, path, { body = null, type = "application/json", accept = "application/json", signal = null } = {}) {
    const reply = await this.send(method, path, { body, type, accept, signal });
    return { text: await reply.text(), warnings: warningsOf(reply) };
  }

  async json(method, path, more = {}) {
    return JSON.parse((await this.ask(method, path, more)).text);
  }

  // The reply as it comes; raises a Refusal.
  async send(method, path, { body = null, type = "application/json", accept = "application/json", signal = null } = {}) {
    for (;;) {
      const headers = { Accept: accept, [PAGE]: "1" };
      if (body !== null) {
        headers["Content-Type"] = type;
      }
      if (this.token) {
        headers.Authorization = `Bearer ${this.token}`;
      }
      const reply = await fetch(path, { method, headers, body, signal, cache: "no-store", credentials: "same-origin" });
      if (reply.status === 401 && this.askToken) {
        await this.wait();
        continue;
      }
      if (!reply.ok) {
        throw await refusalOf(reply);
      }
      return reply;
    }
  }

  // The user is asked once for a token, also for concurrent requests.
  async wait() {
    this.asking = this.asking || this.askToken(this.token !== "");
    try {
      this.token = await this.asking;
    } finally {
      this.asking = null;
    }
  }
}

async function refusalOf(reply) {
  const text = await reply.text();
  try {
    const status = JSON.parse(text);
    const causes = (status.details && status.details.causes) || [];
    return new Refusal(reply.status, status.reason || "", status.message || reply.statusText, causes);
  } catch {
    return new Refusal(reply.status, "", text.slice(0, 500) || reply.statusText);
  }
}

function warningsOf(reply) {
  const given = reply.headers.get("Warning") || "";
  return [...given.matchAll(WARNING)].map((found) => found[1].replace(/\\(.)/g, "$1"));
}

// The lines of a reply, each of them JSON, several at a time as they come.
export async function* lines(reply) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        break;
      }
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      const found = parts.filter((part) => part).map((part) => JSON.parse(part));
      if (found.length) {
        yield found;
      }
    }
    if (rest.trim()) {
      yield [JSON.parse(rest)];
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Keeps up with the objects at a path: first all of them, then what happens to each. `read` makes of an event's object
// what is kept of it, with `key` and `version`; `look` sees the objects of bookmarks, too; `onChanges` receives `[{record, before}]`, where a record is null for
// what is gone; `onState` receives "connecting", "live", or what is wrong.
export class Follower {
  // `resumes`: the server has a history of changes, from which a watch goes on. `limit`: the objects are read in pages
  // of so many, each of which `onChanges` receives; 0 reads them all at once.
  constructor(server, path, { accept = "application/json", read, look = () => {}, onChanges, onState = () => {}, resumes = true, limit = 0 }) {
    Object.assign(this, { server, path, accept, read, look, onChanges, onState, resumes, limit });
    this.known = new Map();
    this.version = "";
    // Whether all objects were known once; `state` is what `onState` received last.
    this.isSynced = false;
    this.state = "";
    this.stopping = null;
    this.failures = 0;
  }

  start() {
    if (!this.stopping) {
      this.stopping = new AbortController();
      this.run(this.stopping.signal);
    }
  }

  // What is known stays, and is taken up from there.
  stop() {
    if (this.stopping) {
      this.stopping.abort();
      this.stopping = null;
    }
  }

  async run(signal) {
    while (!signal.aborted) {
      try {
        this.report("connecting");
        await this.watch(signal);
        this.failures = 0;
      } catch (error) {
        if (signal.aborted) {
          return;
        }
        if (error instanceof Refusal && (error.code === 410 || error.code === 504)) {
          this.version = "";
          continue;
        }
        this.report(error instanceof Refusal ? error.message : "the server does not answer");
        await pause(Math.min(FIRST_WAIT * 2 ** this.failures, LONGEST_WAIT), signal);
        this.failures += 1;
      }
    }
  }

  report(state) {
    this.state = state;
    this.onState(state);
  }

  async watch(signal) {
    const query = new URLSearchParams({ watch: "true", allowWatchBookmarks: "true" });
    let there = null;
    if (this.limit && !this.version) {
      await this.list(signal);
    }
    if (this.version && this.resumes) {
      query.set("resourceVersion", this.version);
    } else {
      query.set("sendInitialEvents", "true");
      query.set("resourceVersionMatch", "NotOlderThan");
      there = new Set();
    }
    const reply = await this.server.send("GET", `${this.path}?${query}`, { accept: this.accept, signal });
    this.synced(there);
    for await (const events of lines(reply)) {
      const changes = [];
      for (const event of events) {
        there = this.take(event, there, changes);
      }
      this.onChanges(changes);
      this.synced(there);
    }
  }

  // Reads all objects page by page.
  async list(signal) {
    const there = new Set();
    const query = new URLSearchParams({ limit: this.limit });
    for (;;) {
      const page = await this.server.json("GET", `${this.path}?${query}`, { accept: this.accept, signal });
      const { continue: next = "", remainingItemCount: left = 0, resourceVersion } = page.metadata;
      const changes = [];
      this.take({ type: "ADDED", object: page }, there, changes);
      if (!next) {
        this.forget(there, changes);
        this.onChanges(changes);
        this.version = resourceVersion;
        return;
      }
      this.onChanges(changes);
      this.report(`${number(there.size)} of ${number(there.size + left)} read`);
      query.set("continue", next);
    }
  }

  // All is known, unless a list is still on its way.
  synced(there) {
    if (!there && this.state !== "live") {
      this.failures = 0;
      this.isSynced = true;
      this.report("live");
    }
  }

  // Takes an event in; `there` are the keys that a new list has named so far, null once it is whole.
  take({ type, object }, there, changes) {
    if (type === "ERROR") {
      throw new Refusal(object.code || 500, object.reason || "", object.message || "the watch has ended");
    }
    this.look(object);
    if (type === "BOOKMARK") {
      const { resourceVersion, annotations = {} } = object.metadata;
      this.version = resourceVersion;
      return annotations[INITIAL_END] === "true" ? this.forget(there, changes) : there;
    }
    for (const record of this.read(object)) {
      const before = this.known.get(record.key) || null;
      if (type === "DELETED") {
        this.known.delete(record.key);
        changes.push({ record: null, before: before || record });
      } else {
        this.known.set(record.key, record);
        there?.add(record.key);
        changes.push({ record, before });
      }
      if (!there) {
        this.version = record.version;
      }
    }
    return there;
  }

  // What a whole list has not named is gone.
  forget(there, changes) {
    for (const [key, before] of this.known) {
      if (there && !there.has(key)) {
        this.known.delete(key);
        changes.push({ record: null, before });
      }
    }
    return null;
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

// The path of an object, or of the objects of a kind where no name is given.
export function pathOf(kind, namespace = "", name = "") {
  const base = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`;
  const within = kind.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${base}${within}/${kind.plural}${name ? `/${encodeURIComponent(name)}` : ""}`;
}

// The name that owns the fields which the page writes.
export function writing(query = {}) {
  return new URLSearchParams({ fieldManager: MANAGER, ...query });
}

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
// Those that people look for most come first.
const FIRST = [
  "Pod", "Node", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "PodDisruptionBudget",
  "PriorityClass", "DisruptionPolicy", "Namespace", "ResourceQuota", "PersistentVolumeClaim", "PersistentVolume",
  "StorageClass", "ConfigMap", "Event",
];

// All kinds whose objects can be watched: `{group, version, kind, plural, namespaced, verbs, label}`.
export async function readKinds(server) {
  const found = [];
  for (const path of ["/api", "/apis"]) {
    const list = await server.json("GET", path, { accept: AGGREGATED });
    for (const group of list.items || []) {
      for (const version of group.versions || []) {
        found.push(...kindsIn(group.metadata.name || "", version));
      }
    }
  }
  return arranged(found);
}

function kindsIn(group, { version, resources = [] }) {
  return resources
    .filter((resource) => resource.verbs.includes("list") && resource.verbs.includes("watch"))
    .map((resource) => ({
      group,
      version,
      kind: resource.responseKind.kind,
      plural: resource.resource,
      namespaced: resource.scope === "Namespaced",
      verbs: resource.verbs,
      subresources: (resource.subresources || []).map((part) => part.subresource),
    }));
}

// One entry for each kind, in the version that the server names first; where two groups have a kind, both with theirs.
function arranged(found) {
  const kinds = new Map();
  for (const kind of found) {
    const key = `${kind.group}/${kind.kind}`;
    if (!kinds.has(key)) {
      kinds.set(key, kind);
    }
  }
  const count = Map.groupBy(kinds.values(), (kind) => kind.kind);
  for (const kind of kinds.values()) {
    kind.label = count.get(kind.kind).length > 1 ? `${kind.kind} (${kind.group || "core"})` : kind.kind;
  }
  const rank = (kind) => (FIRST.includes(kind.kind) ? FIRST.indexOf(kind.kind) : FIRST.length);
  return [...kinds.values()].sort(
    (left, right) => rank(left) - rank(right) || left.label.localeCompare(right.label),
  );
}

// The kind of an object that says its apiVersion and kind; undefined for one that the server does not have.
export function kindOf(kinds, apiVersion, kind) {
  const [version, group] = apiVersion.split("/").reverse();
  return kinds.find((each) => each.kind === kind && each.group === (group || "")) && {
    ...kinds.find((each) => each.kind === kind && each.group === (group || "")),
    version,
  };
}
