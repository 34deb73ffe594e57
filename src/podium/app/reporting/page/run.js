// One run and the state at each moment. A moment is the place of an event in the run.

import { MOST_CLASSES, kindOf } from "./colours.js";
import { clock, since } from "./formats.js";

const NEVER = Infinity;

// The rows of a list by a number that each has: `of(number)` are the places of its rows, in their order.
class Groups {
  constructor(numbers, count) {
    this.starts = new Int32Array(count + 1);
    for (const each of numbers) {
      if (each >= 0) {
        this.starts[each + 1] += 1;
      }
    }
    for (let place = 0; place < count; place += 1) {
      this.starts[place + 1] += this.starts[place];
    }
    this.places = new Int32Array(this.starts[count]);
    const next = this.starts.slice();
    numbers.forEach((each, place) => {
      if (each >= 0) {
        this.places[next[each]] = place;
        next[each] += 1;
      }
    });
  }

  of(number) {
    return this.places.subarray(this.starts[number], this.starts[number + 1]);
  }
}

function never(column) {
  return Float64Array.from(column, (moment) => (moment === null ? NEVER : moment));
}

export class RunTimeline {
  constructor(data) {
    Object.assign(this, { name: data.name, start: data.start, end: data.end, resources: data.resources });
    // Of a cluster that runs, times are those of the clock.
    this.isLive = Boolean(data.isLive);
    Object.assign(this, { words: data.words, amounts: data.amounts, summary: data.summary });
    this.nodes = { ...data.nodes, gone: never(data.nodes.gone) };
    this.pods = { ...data.pods };
    for (const column of ["scheduled", "started", "killing", "ended"]) {
      this.pods[column] = never(data.pods[column]);
    }
    this.events = data.events;
    this.times = Float64Array.from(data.events.time);
    this.podCount = this.pods.name.length;
    this.nodeCount = this.nodes.name.length;
    this.eventCount = this.times.length;
    this.workloadOf = new Map(data.workloads.map((workload) => [workload.workload, workload]));
    this.podsOfNode = new Groups(this.pods.node, this.nodeCount);
    this.eventsOfPod = new Groups(this.events.pod, this.podCount);
    this.eventsOfNode = new Groups(this.events.node, this.nodeCount);
    this.causedBy = new Groups(this.events.byPod, this.podCount);
    this.podsOfWorkload = new Groups(this.pods.workload, this.words.length);
    this.numberOfWord = new Map(this.words.map((word, place) => [word, place]));
    this.nodeOfName = new Map(this.nodes.name.map((word, place) => [this.words[word], place]));
    this.podsOfName = new Groups(this.pods.name, this.words.length);
    this.kindOfWord = this.words.map(kindOf);
    // By pod, the times in which something held it that was to go.
    this.holdsOf = new Map();
    (data.holds?.pod ?? []).forEach((pod, place) => {
      const { since, until, why } = data.holds, held = { from: since[place], until: until[place] ?? NEVER, why: why[place] };
      this.holdsOf.set(pod, [...(this.holdsOf.get(pod) ?? []), held]);
    });
    // By pod, the place of why it went where it is, as far as that is known.
    this.placements = data.placements;
    this.placementOf = new Map((data.placements?.pod ?? []).map((pod, place) => [pod, place]));
    this.classify(this.pods.priority);
    this.waits = this.findWaits();
    this.preemptions = this.findPreemptions();
  }

  word(number) {
    return number < 0 ? "" : this.words[number];
  }

  podName(pod) {
    return this.words[this.pods.name[pod]];
  }

  nodeName(node) {
    return node < 0 ? "" : this.words[this.nodes.name[node]];
  }

  workloadName(pod) {
    return this.word(this.pods.workload[pod]);
  }

  reason(event) {
    return this.words[this.events.reason[event]];
  }

  kind(event) {
    return this.kindOfWord[this.events.reason[event]];
  }

  // Puts priorities into as many classes as there are shades: each by itself, or so many neighbours together. They are
  // those of all stories that are shown side by side, so that a shade means the same priority in each.
  classify(priorities) {
    const different = [...new Set(priorities)].sort((left, right) => left - right);
    const each = Math.max(Math.ceil(different.length / MOST_CLASSES), 1);
    this.classes = [];
    const classOf = new Map();
    different.forEach((priority, place) => {
      const found = Math.floor(place / each);
      classOf.set(priority, found);
      this.classes[found] = [this.classes[found] ? this.classes[found][0] : priority, priority];
    });
    this.classOf = Uint8Array.from(this.pods.priority, (priority) => classOf.get(priority));
  }

  // The pods by name and number in this story that a selection is about; null for none.
  find(selection) {
    if (!selection) {
      return null;
    }
    const { kind, name } = selection;
    if (kind === "node") {
      const node = this.nodeOfName.get(name);
      return { node: node ?? -1, pods: node === undefined ? [] : [...this.podsOfNode.of(node)] };
    }
    const word = this.numberOfWord.get(name);
    const groups = kind === "pod" ? this.podsOfName : this.podsOfWorkload;
    return { node: -1, pods: word === undefined ? [] : [...groups.of(word)] };
  }

  // Which pods stay lit: the selected pods, their victims and their preemptors.
  lit(selection) {
    const found = this.find(selection);
    if (!found) {
      return null;
    }
    const lit = new Uint8Array(this.podCount);
    for (const pod of found.pods) {
      lit[pod] = 1;
      for (const event of [...this.causedBy.of(pod), ...this.eventsOfPod.of(pod)]) {
        for (const other of [this.events.pod[event], this.events.byPod[event]]) {
          if (other >= 0) {
            lit[other] = 1;
          }
        }
      }
    }
    return lit;
  }

  // The last moment that is not after a time from the start.
  momentAt(time) {
    let low = 0, high = this.eventCount;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - 1;
  }

  // A time in seconds from the start in words: by the clock if the cluster runs, with the date unless it is left out.
  when(seconds, isDated = true) {
    return this.isLive ? clock(Date.parse(this.start) + seconds * 1000).slice(isDated ? 0 : 11) : since(seconds);
  }

  timeOf(moment) {
    return moment < 0 ? 0 : moment === NEVER ? this.end : this.times[moment];
  }

  // When a pod was created, in seconds from the start; negative before it.
  createdAt(pod) {
    return this.timeOf(this.pods.created[pod]) - this.pods.age[pod];
  }

  isOnNode(pod, moment) {
    return this.pods.scheduled[pod] <= moment && moment < this.pods.ended[pod];
  }

  isWaiting(pod, moment) {
    return this.pods.created[pod] <= moment && moment < Math.min(this.pods.scheduled[pod], this.pods.ended[pod]);
  }

  offers(node, resource) {
    return this.amounts[this.nodes.offers[node]][resource];
  }

  asks(pod, resource) {
    return this.amounts[this.pods.asks[pod]][resource];
  }

  // How much of a node is requested at a moment, by class of priority, and in all.
  fill(node, moment, resource) {
    const byClass = new Float64Array(this.classes.length);
    let all = 0, pods = 0;
    for (const pod of this.podsOfNode.of(node)) {
      if (this.isOnNode(pod, moment)) {
        byClass[this.classOf[pod]] += this.asks(pod, resource);
        all += this.asks(pod, resource);
        pods += 1;
      }
    }
    return { byClass, all, pods, offered: this.offers(node, resource) };
  }

  // The last event of a reason that a pod has had up to a moment; -1 for none.
  lastOf(pod, reason, moment) {
    let found = -1;
    for (const event of this.eventsOfPod.of(pod)) {
      if (event <= moment && this.reason(event) === reason) {
        found = event;
      }
    }
    return found;
  }

  // The pods that waited for a node, which is not those that got one at once.
  findWaits() {
    const refused = new Uint8Array(this.podCount);
    this.events.reason.forEach((reason, event) => {
      if (this.words[reason] === "FailedScheduling" && this.events.pod[event] >= 0) {
        refused[this.events.pod[event]] = 1;
      }
    });
    const waits = [];
    for (let pod = 0; pod < this.podCount; pod += 1) {
      const until = Math.min(this.pods.scheduled[pod], this.pods.ended[pod]);
      const created = this.pods.created[pod];
      if (until > created && (refused[pod] || this.timeOf(until) > this.timeOf(created) || until === NEVER)) {
        waits.push({ pod, from: created, until });
      }
    }
    return waits.sort((left, right) => left.from - right.from || left.pod - right.pod);
  }

  // The preemptions: victim, preemptor and time.
  findPreemptions() {
    const found = [];
    this.events.reason.forEach((reason, event) => {
      if (this.words[reason] === "Preempted" && this.events.pod[event] >= 0) {
        found.push({ event, victim: this.events.pod[event], by: this.events.byPod[event] });
      }
    });
    return found;
  }
}
