// A history as the columns that are drawn, which are those of a run that was played.
import { BEFORE } from "./history.js";

// A history in the columns of a story: `Story` draws it like a run that was played.
export function columnsOf(history, now) {
  const first = history.events.length ? history.events[0].number : history.next;
  const moment = (number) => (number === null ? null : Math.max(number - first, BEFORE));
  const words = new Words(), nodes = livesOfNodes(history), pods = [...history.pods.values()].filter((life) => life.ended !== BEFORE);
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

class Words {
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
