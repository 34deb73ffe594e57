// Descriptions of pods, nodes and events at a moment, in the words of Podium's text.

import { amount, counted, duration, number, percent } from "./formats.js";

const MOST = 6;

// An event in a line: time, what, and who did it or why.
export function eventLine(story, event) {
  return `${story.when(story.times[event])} ${story.reason(event)}${detail(story, event)}`;
}

// The text about an event that follows its reason.
export function detail(story, event) {
  const by = story.word(story.events.by[event]), message = story.word(story.events.message[event]);
  const parts = [];
  if (by && by !== "default-scheduler" && by !== "kubelet") {
    parts.push(`by ${by}`);
  }
  if (message) {
    parts.push(message);
  }
  const count = story.events.count[event];
  const again = count > 1 ? ` (${number(count)} times, last at ${story.when(story.events.lastTime[event])})` : "";
  return (parts.length ? `: ${parts.join(": ")}` : "") + again;
}

// What a pod asks for.
function asked(story, pod) {
  const parts = story.resources
    .map((resource, place) => [story.asks(pod, place), resource])
    .filter(([value]) => value)
    .map(([value, resource]) => `${amount(value, resource)} ${resource}`);
  return parts.join(", ") || "no resources";
}

// Lines about a pod at a moment, its name first.
export function podLines(story, pod, moment) {
  const lines = [story.podName(pod), `priority ${number(story.pods.priority[pod])}, asks for ${asked(story, pod)}`];
  if (story.workloadName(pod) !== `Pod ${story.podName(pod)}`) {
    lines.push(`of ${story.workloadName(pod)}`);
  }
  lines.push(...state(story, pod, moment));
  return lines;
}

function state(story, pod, moment) {
  const { created, scheduled, started, killing, ended } = story.pods, node = story.nodeName(story.pods.node[pod]);
  if (moment < created[pod]) {
    return [`is made at ${story.when(story.timeOf(created[pod]))}`];
  }
  if (ended[pod] <= moment) {
    return [...ending(story, pod), `was on ${node || "no node"}`];
  }
  if (moment < scheduled[pod]) {
    return waiting(story, pod, moment);
  }
  const began = story.timeOf(Math.max(scheduled[pod], -1));
  const lines = [`on ${node}${scheduled[pod] < 0 ? before(story, pod) : ` since ${story.when(began)}`}`];
  if (moment < started[pod]) {
    lines.push("has its node, and does not run yet");
  }
  if (killing[pod] <= moment) {
    lines.push(`is being deleted: ${eventLine(story, killing[pod])}`);
    const until = ended[pod] === Infinity ? "the end" : story.when(story.timeOf(ended[pod]));
    lines.push(`its grace period lasts until ${until}`);
  } else if (killing[pod] !== Infinity) {
    lines.push(`will be deleted: ${eventLine(story, killing[pod])}`);
  }
  for (const held of story.holdsOf.get(pod) ?? []) {
    lines.push(`was to go, and held from ${story.when(held.from)} ${held.until === Infinity ? "on" : `to ${story.when(held.until)}`}: ${story.word(held.why)}`);
  }
  const refused = story.lastOf(pod, "FailedScheduling", scheduled[pod]);
  if (refused >= 0 && scheduled[pod] >= 0) {
    const waited = story.timeOf(scheduled[pod]) - story.createdAt(pod);
    lines.push(`had waited ${duration(waited)}: ${story.word(story.events.message[refused])}`);
  }
  lines.push(...whyHere(story, pod));
  const victims = [...story.causedBy.of(pod)].filter((event) => story.reason(event) === "Preempted");
  if (victims.length) {
    lines.push(`preempted ${few(victims.map((event) => story.podName(story.events.pod[event])))}`);
  }
  return lines;
}

// Why a pod went where it is: how many nodes it fitted, what the others said, and the scores in which that one was best.
function whyHere(story, pod) {
  const place = story.placementOf.get(pod);
  if (place === undefined) {
    return [];
  }
  const { nodes, fitting, refused, total, next, nextTotal, scores } = story.placements;
  if (fitting[place] < 0) {
    return ["capacity was reserved for it there: no other node was examined"];
  }
  const why = story.word(refused[place]);
  const lines = [`fitted ${number(fitting[place])} of ${counted(nodes[place], "node")}${why ? `: ${why}` : ""}`];
  if (total[place] >= 0) {
    const other = next[place] < 0 ? "" : story.nodeName(next[place]);
    const than = nextTotal[place] === total[place] ? "as good as" : "better than";
    lines.push(`scored ${number(total[place])}, ${than} the next, ${other ? `${other} with ` : ""}${number(nextTotal[place])}`);
    for (const [plugin, raw, normalized, weight] of scores[place]) {
      const of = raw === normalized ? "" : ` (raw ${number(raw)})`;
      lines.push(`  ${story.word(plugin)} ${number(normalized)} × ${number(weight)} = ${number(normalized * weight)}${of}`);
    }
  }
  return lines;
}

// How long a pod has been on its node that was there before the start.
function before(story, pod) {
  return story.isLive ? `; created ${story.when(story.createdAt(pod))}` : " from before the start";
}

function waiting(story, pod, moment) {
  const from = story.createdAt(pod);
  const began = from < 0 && !story.isLive ? `${duration(-from)} before the start` : story.when(from);
  const lines = [`waits for a node since ${began}${story.isLive ? `, for ${duration(Math.round(story.timeOf(moment) - from))}` : ""}`];
  const refused = story.lastOf(pod, "FailedScheduling", Math.max(moment, 0));
  // A live page may know the last failure of a pod, and not the event.
  const known = story.pods.refused ? story.word(story.pods.refused[pod]) : "";
  lines.push(refused < 0 ? known || (story.isLive ? "no scheduler has reported a decision about it" : "not attempted yet") : story.word(story.events.message[refused]));
  const nominated = story.lastOf(pod, "Nominated", Math.max(moment, 0));
  if (nominated > story.lastOf(pod, "NominationCleared", Math.max(moment, 0))) {
    lines.push(`nominated to ${story.nodeName(story.events.node[nominated])}`);
  }
  return lines;
}

function ending(story, pod) {
  const at = story.pods.ended[pod];
  if (at < 0) {
    return [`${story.word(story.pods.state[pod])} ${story.isLive ? "before this page was opened" : "before the start"}`];
  }
  const disruption = story.word(story.pods.disruption[pod]);
  const preempted = story.lastOf(pod, "Preempted", Infinity);
  const why = preempted >= 0 ? `preempted${detail(story, preempted).replace(/^: /, " ")}` : disruption;
  return [`ended at ${story.when(story.timeOf(at))}${why ? `: ${why}` : ""}`];
}

// Lines about a node at a moment, its name first.
export function nodeLines(story, node, moment, resource) {
  if (node < 0) {
    return ["this node is not in this run"];
  }
  const fill = story.fill(node, moment, resource), name = story.resources[resource];
  const lines = [story.nodeName(node)];
  const about = [story.nodes.zone[node], story.nodes.shape[node], story.nodes.marks[node]].map((word) => story.word(word));
  if (about.some((each) => each)) {
    lines.push(about.filter((each) => each).join(", "));
  }
  if (moment < story.nodes.added[node] || moment >= story.nodes.gone[node]) {
    lines.push("is not there at this moment");
  }
  lines.push(`${counted(fill.pods, "pod")}; ${name} ${share(fill.all, fill.offered)} requested: ` +
    `${amount(fill.all, name)} of ${amount(fill.offered, name)}`);
  story.classes.forEach((range, place) => {
    if (fill.byClass[place]) {
      lines.push(`  priority ${rangeText(range)}: ${share(fill.byClass[place], fill.offered)}`);
    }
  });
  return lines;
}

function share(part, whole) {
  return whole ? percent(part / whole) : part ? "more than there is" : "0%";
}

// A class of priorities in words.
export function rangeText([least, most]) {
  return least === most ? number(least) : `${number(least)} to ${number(most)}`;
}

// Names in a line, those beyond a few counted.
export function few(names, most = MOST) {
  return names.length <= most + 1 ? names.join(", ") : `${names.slice(0, most).join(", ")} and ${number(names.length - most)} more`;
}

// How all stands at a moment, in a line.
export function standing(story, moment) {
  let onNodes = 0, waits = 0, ending = 0;
  for (let pod = 0; pod < story.podCount; pod += 1) {
    if (story.isOnNode(pod, moment)) {
      onNodes += 1;
      ending += story.pods.killing[pod] <= moment;
    } else {
      waits += story.isWaiting(pod, moment);
    }
  }
  const parts = [`${counted(onNodes, "pod")} on nodes`, `${number(waits)} waiting`];
  if (ending) {
    parts.push(`${number(ending)} being deleted`);
  }
  return parts.join(", ");
}
