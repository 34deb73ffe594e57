// What happens while the page is open: pods and nodes with the moments of their lives, and the events in their order.
// A moment is the number of an event, BEFORE for what was so when the page was opened. What lies too far back is let go.

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
    this.nodeNames = new Map();
  }

  // Takes in what has become of pods; `isFirst`: they are told for the first time, and were there before.
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
    const life = { record, created: BEFORE, scheduled: null, started: null, killing: null, ended: null, disruption: "", from: Math.min(record.created, now) };
    this.pods.set(record.key, life);
    if (!isFirst) {
      life.created = this.note("Created", now, { life });
      return life;
    }
    life.scheduled = record.node ? BEFORE : null;
    life.started = record.node && record.phase !== "Pending" ? BEFORE : null;
    life.killing = record.isDeleted && record.node ? BEFORE : null;
    life.ended = ENDS[record.phase] ? BEFORE : null;
    life.told = { waits: record.waits, nominated: record.nominated };
    return life;
  }

  // What has happened to a pod between what was known of it and what is told.
  follow(life, record, now) {
    const told = life.told || { waits: "", nominated: "" };
    life.record = record;
    life.told = { waits: record.waits, nominated: record.nominated };
    if (record.nominated && record.nominated !== told.nominated && !record.node) {
      this.note("Nominated", now, { life, node: record.nominated });
    }
    if (record.waits && record.waits !== told.waits && !record.node) {
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
    this.events.splice(0, gone);
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

  // For whom pods were preempted: who was nominated to their node close to it.
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
