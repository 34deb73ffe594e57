// The pods and nodes while the page is open: records, events, and the columns that are drawn. Amounts are whole numbers:
// of cpu in thousandths, of all else in units.

const ZONE = "topology.kubernetes.io/zone";
const POOLS = ["karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool"];
const SHAPE = "node.kubernetes.io/instance-type";

// A pod, from an event of a watch, which leaves out what is usual.
export function podOf({
  key, version, name, workload, requests, priority = 0, node = "", created = "", phase = "Pending", nominated = "",
  isDeleted = false, waits = "", disruption = "", why = "",
}) {
  return [{
    key, version, name, workload, requests, priority, node, created: Date.parse(created) || 0, phase, nominated,
    isDeleted, waits, disruption, why,
  }];
}

// A node, from an event of a watch.
export function nodeOf({ metadata, spec, status }) {
  const { labels } = metadata, taints = spec.taints || [];
  const conditions = status.conditions, ready = conditions.find(({ type }) => type === "Ready");
  const pressures = conditions.filter(({ type, status: is }) => type !== "Ready" && is === "True").map(({ type }) => type);
  return [{
    key: metadata.uid || metadata.name,
    version: metadata.resourceVersion,
    name: metadata.name,
    zone: labels[ZONE] || "",
    pool: POOLS.map((label) => labels[label]).find((value) => value) || "",
    shape: labels[SHAPE] || "",
    isBad: Boolean(ready && ready.status !== "True") || pressures.length > 0,
    offers: status.allocatable,
    isDown: Boolean(ready) && ready.status !== "True",
    isCordoned: Boolean(spec.unschedulable),
    marks: [spec.unschedulable ? "cordoned" : "", ready && ready.status !== "True" ? "not ready" : "", ...pressures,
      ...taints.filter((taint) => !taint.key.startsWith("node.kubernetes.io/")).map((taint) => `${taint.key}:${taint.effect}`)]
      .filter((mark) => mark).join(", "),
  }];
}

export const BEFORE = -1;
const LONGEST_MS = 30 * 60 * 1000;
const MOST_EVENTS = 20000;
const NOMINATED_NEAR = 200;
const PREEMPTED = "PreemptionByScheduler";
const ENDS = { Succeeded: "Finished", Failed: "Failed" };

export class History {
  // `now` is the time in milliseconds.
  constructor(now) {
    this.began = now;
    this.events = [];
    this.next = 0;
    this.pods = new Map();
    this.nodes = new Map();
    this.reasons = {};
  }

  // Takes in what has become of pods; `isFirst`: they are listed for the first time, and existed before.
  takePods(changes, now, isFirst) {
    for (const { record, before } of changes) {
      const { key } = record || before;
      const life = this.pods.get(key) || this.begin(record || before, now, isFirst);
      if (record) {
        this.follow(life, record, now);
      } else {
        this.end(life, now);
      }
    }
  }

  begin(record, now, isFirst) {
    const life = { record, created: BEFORE, scheduled: null, started: null, killing: null, ended: null, disruption: "", refused: "", from: Math.min(record.created, now) };
    this.pods.set(record.key, life);
    if (!isFirst) {
      life.created = this.note("Created", now, { life });
      return life;
    }
    life.scheduled = record.node ? BEFORE : null;
    life.started = record.node && record.phase !== "Pending" ? BEFORE : null;
    life.killing = record.isDeleted && record.node ? BEFORE : null;
    life.ended = ENDS[record.phase] ? BEFORE : null;
    life.reported = { waits: record.waits, nominated: record.nominated };
    // The attempt that failed was before the first event here.
    life.refused = record.waits;
    return life;
  }

  // What has happened to a pod between its last state and the new one.
  follow(life, record, now) {
    const before = life.reported || { waits: "", nominated: "" };
    life.record = record;
    life.reported = { waits: record.waits, nominated: record.nominated };
    if (record.nominated && record.nominated !== before.nominated && !record.node) {
      this.note("Nominated", now, { life, node: record.nominated });
    }
    if (record.waits && record.waits !== before.waits && !record.node) {
      this.note("FailedScheduling", now, { life, message: record.waits });
    }
    if (record.node && life.scheduled === null) {
      life.scheduled = this.note("Scheduled", now, { life, node: record.node });
    }
    if (record.node && record.phase === "Running" && life.started === null) {
      life.started = this.note("Started", now, { life, node: record.node });
    }
    this.disrupt(life, record, now);
    if (record.isDeleted && life.killing === null && record.node) {
      life.killing = this.note("Killing", now, { life, node: record.node });
    }
    if (ENDS[record.phase] && life.ended === null) {
      life.ended = this.note(ENDS[record.phase], now, { life, node: record.node });
    }
  }

  disrupt(life, record, now) {
    if (!record.disruption || life.disruption) {
      return;
    }
    life.disruption = record.why || record.disruption;
    if (life.ended === null && life.killing !== BEFORE) {
      const isPreempted = record.disruption === PREEMPTED;
      this.note(isPreempted ? "Preempted" : "Evicted", now, { life, node: record.node, message: isPreempted ? "" : record.why });
    }
  }

  end(life, now) {
    if (life.ended === null) {
      const reason = life.scheduled === null ? "Deleted" : "Terminated";
      life.ended = this.note(reason, now, { life, node: life.record.node });
    }
    life.isGone = true;
  }

  // Why pods wait, by name, of which no condition says it.
  noteReasons(reasons) {
    this.reasons = reasons;
  }

  // Takes in what has become of nodes.
  takeNodes(changes, now, isFirst) {
    for (const { record, before } of changes) {
      const { key, name } = record || before;
      let life = this.nodes.get(key);
      if (!life) {
        life = { record: record || before, added: BEFORE, gone: null };
        this.nodes.set(key, life);
        life.added = isFirst ? BEFORE : this.note("NodeAdded", now, { node: name });
      } else if (record) {
        this.followNode(life.record, record, now);
        life.record = record;
      }
      if (!record) {
        life.gone = this.note("NodeRemoved", now, { node: name });
      }
    }
  }

  followNode(before, record, now) {
    if (before.isDown !== record.isDown) {
      this.note(record.isDown ? "NodeDown" : "NodeUp", now, { node: record.name, message: record.isDown ? "its kubelet is not heard of" : "" });
    }
    if (before.isCordoned !== record.isCordoned) {
      this.note(record.isCordoned ? "Cordoned" : "Uncordoned", now, { node: record.name });
    }
  }

  // Notes an event; its number.
  note(reason, time, { life = null, node = "", message = "" }) {
    this.events.push({ number: this.next, time, reason, life, node, message });
    this.next += 1;
    return this.next - 1;
  }

  // Lets go of what lies too far back: events, and the pods and nodes that were gone by then.
  forget(now) {
    const oldest = now - LONGEST_MS;
    let gone = Math.max(this.events.length - MOST_EVENTS, 0);
    while (gone < this.events.length && this.events[gone].time < oldest) {
      gone += 1;
    }
    if (!gone) {
      return;
    }
    const last = this.events[gone - 1];
    this.began = Math.max(this.began, last.time);
    for (const { reason, life, message } of this.events.splice(0, gone)) {
      if (reason === "FailedScheduling") {
        life.refused = message;
      }
    }
    for (const [key, life] of this.pods) {
      if (life.isGone && life.ended <= last.number) {
        this.pods.delete(key);
      }
    }
    for (const [key, life] of this.nodes) {
      if (life.gone !== null && life.gone <= last.number) {
        this.nodes.delete(key);
      }
    }
  }

  // The preemptors of pods: those nominated to their node at about that time.
  preemptors() {
    const found = new Map(), byNode = new Map();
    for (const event of this.events) {
      if (event.reason === "Nominated") {
        byNode.set(event.node, [...(byNode.get(event.node) || []), event]);
      }
    }
    for (const event of this.events) {
      if (event.reason === "Preempted") {
        const near = (byNode.get(event.node) || []).filter((each) => Math.abs(each.number - event.number) <= NOMINATED_NEAR);
        near.sort((left, right) => Math.abs(left.number - event.number) - Math.abs(right.number - event.number) || left.number - right.number);
        if (near.length) {
          found.set(event.number, near[0].life);
        }
      }
    }
    return found;
  }
}

// A history in the columns of a story: `RunTimeline` draws it like a run that was played.
export function columnsOf(history, now) {
  const first = history.events.length ? history.events[0].number : history.next;
  const moment = (number) => (number === null ? null : Math.max(number - first, BEFORE));
  const words = new DistinctTexts(), nodes = livesOfNodes(history), pods = [...history.pods.values()].filter((life) => life.ended !== BEFORE);
  pods.sort((left, right) => compare(left.record.name, right.record.name) || left.from - right.from);
  const resources = resourcesOf(nodes, pods), amounts = new Amounts(resources);
  const placeOfNode = new Map(nodes.map((life, place) => [life.record.name, place]));
  const placeOfPod = new Map(pods.map((life, place) => [life, place]));
  const node = (name) => placeOfNode.get(name) ?? -1;
  const pod = (life) => placeOfPod.get(life) ?? -1;
  const preemptors = history.preemptors();
  const seconds = (time) => Math.max((time - history.began) / 1000, 0);
  const { events } = history;
  return {
    name: "",
    isLive: true,
    start: new Date(history.began).toISOString(),
    end: Math.max(seconds(now), 1),
    words: words.list,
    resources,
    amounts: amounts.list,
    nodes: {
      name: nodes.map((life) => words.of(life.record.name)),
      zone: nodes.map((life) => words.of(life.record.zone)),
      shape: nodes.map((life) => words.of(life.record.shape)),
      offers: nodes.map((life) => amounts.of(life.record.offers)),
      added: nodes.map((life) => moment(life.added)),
      gone: nodes.map((life) => moment(life.gone)),
      marks: nodes.map((life) => words.of(life.record.marks)),
    },
    pods: {
      name: pods.map((life) => words.of(life.record.name)),
      workload: pods.map((life) => words.of(life.record.workload)),
      priority: pods.map((life) => life.record.priority),
      node: pods.map((life) => node(life.record.node)),
      asks: pods.map((life) => amounts.of(life.record.requests)),
      created: pods.map((life) => moment(life.created)),
      scheduled: pods.map((life) => moment(life.scheduled)),
      started: pods.map((life) => moment(life.started)),
      killing: pods.map((life) => moment(life.killing)),
      ended: pods.map((life) => moment(life.ended)),
      age: pods.map((life) => Math.max((history.began - life.from) / 1000, 0)),
      state: pods.map((life) => words.of(life.record.phase)),
      disruption: pods.map((life) => words.of(life.disruption)),
      refused: pods.map((life) => words.of(life.refused || history.reasons[life.record.name])),
      nominated: pods.map((life) => node(life.record.nominated)),
    },
    events: {
      time: events.map((event) => seconds(event.time)),
      reason: events.map((event) => words.of(event.reason)),
      pod: events.map((event) => pod(event.life)),
      node: events.map((event) => node(event.node)),
      by: events.map((event) => words.of(preemptors.get(event.number)?.record.name)),
      byPod: events.map((event) => pod(preemptors.get(event.number))),
      message: events.map((event) => words.of(event.message)),
      count: events.map(() => 1),
      lastTime: events.map((event) => seconds(event.time)),
    },
    workloads: [],
    summary: {},
  };
}

// One life for each name of a node: the one that is there, or the last that was.
function livesOfNodes(history) {
  const byName = new Map();
  for (const life of history.nodes.values()) {
    const other = byName.get(life.record.name);
    if (!other || other.gone !== null) {
      byName.set(life.record.name, life);
    }
  }
  return [...byName.values()].sort((left, right) => compare(left.record.name, right.record.name));
}

// What some node offers and some pod asks for; cpu in any case.
function resourcesOf(nodes, pods) {
  const offered = new Set(), asked = new Set();
  for (const { record } of nodes) {
    Object.keys(record.offers).forEach((name) => record.offers[name] && offered.add(name));
  }
  for (const { record } of pods) {
    Object.keys(record.requests).forEach((name) => asked.add(name));
  }
  const rest = [...offered].filter((name) => asked.has(name) && name !== "cpu" && name !== "memory" && name !== "pods").sort();
  return ["cpu", ...(offered.has("memory") && asked.has("memory") ? ["memory"] : []), ...rest];
}

class DistinctTexts {
  constructor() {
    this.list = [];
    this.places = new Map();
  }

  of(text) {
    if (!text) {
      return -1;
    }
    let place = this.places.get(text);
    if (place === undefined) {
      place = this.list.length;
      this.list.push(text);
      this.places.set(text, place);
    }
    return place;
  }
}

class Amounts {
  constructor(resources) {
    this.resources = resources;
    this.list = [];
    this.places = new Map();
  }

  of(amounts) {
    const row = this.resources.map((name) => amounts[name] || 0), key = row.join();
    let place = this.places.get(key);
    if (place === undefined) {
      place = this.list.length;
      this.list.push(row);
      this.places.set(key, place);
    }
    return place;
  }
}

function compare(left, right) {
  return left < right ? -1 : left > right ? 1 : 0;
}
