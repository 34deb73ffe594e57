// The first view: what is wrong now, and what can be done about it.

import { button, element, fill } from "./drawing/dom.js";
import { ageText, clock, counted, number } from "./drawing/formats.js";

const EACH_MS = 5000;
const SOON_MS = 1000;
const MOST_PREEMPTIONS = 20;
const MOST_NAMES = 5;

export class NowTab {
  constructor(page) {
    this.page = page;
    this.status = element("p", { className: "hint", role: "status" }, "Reading the cluster.");
    this.tiles = element("nav", { className: "tiles", "aria-label": "What is wrong, in numbers" });
    this.sections = element("div", {});
    this.element = element("div", { className: "now" }, element("h2", { className: "sr-only" }, "What is wrong now"), this.status, this.tiles, this.sections);
    this.shown = "";
  }

  show() {
    this.isShown = true;
    return this.read();
  }

  hide() {
    this.isShown = false;
    clearTimeout(this.timer);
  }

  // The page is hidden, or visible again.
  pause() {
    this.hide();
  }

  resume() {
    this.show();
  }

  async read() {
    clearTimeout(this.timer);
    let found = null;
    try {
      found = await this.page.server.json("GET", "/ui/now");
      this.page.noteReasons(found.reasons);
      this.paint(found);
    } catch (error) {
      this.status.textContent = `The cluster cannot be read: ${error.message}`;
      this.status.classList.add("bad");
    }
    if (this.isShown) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.read(), found && found.progress !== null ? SOON_MS : EACH_MS);
    }
  }

  paint(found) {
    this.status.classList.toggle("bad", Boolean(found.problem));
    this.status.textContent = statusText(found);
    // What has not changed keeps its focus and its place.
    const { now, progress, ...content } = found, text = JSON.stringify(content);
    if (text === this.shown) {
      return;
    }
    this.shown = text;
    const parts = partsOf(found, this.page);
    fill(this.tiles, ...parts.map(({ id, title, count, level }) => element("a", { href: `#now/${id}`, className: `tile ${level}`, onclick: (event) => {
      event.preventDefault();
      document.getElementById(id).scrollIntoView({ block: "start" });
      document.getElementById(id).focus();
    } }, element("strong", {}, count === null ? "…" : number(count)), element("span", {}, title))));
    fill(this.sections, ...parts.map(({ id, title, note, rows, empty, level }) => element("section", { className: "wrong", id, tabIndex: -1, "aria-label": title },
      element("h3", {}, title, note ? element("small", {}, ` ${note}`) : null),
      rows.length ? element("ul", {}, ...rows) : element("p", { className: level === "unknown" ? "faint" : "empty" }, empty))));
  }
}

function statusText({ now, counts, evaluation, progress, problem }) {
  const cluster = `${counted(counts.nodes, "node")}, ${counted(counts.pods, "pod")}.`;
  const working = progress === null ? "" : ` Evaluating the cluster: ${Math.round(progress * 100)}%.`;
  const age = evaluation ? ` Causes, budgets and failures as of ${clock(evaluation.at)}, ${ageText(evaluation.at, now)} ago; that took ${evaluation.seconds} s.` : "";
  return `${cluster}${age}${working}${problem ? ` The evaluation failed: ${problem}` : ""}`;
}

// The sections with their rows; a count is null as long as it is not known.
function partsOf(found, page) {
  const { evaluation } = found, preemptions = preemptionsOf(found.preemptions), waits = "The first evaluation is not done yet.";
  const level = (known, is) => (known ? is : "unknown");
  const bad = found.nodes.filter(({ kind }) => kind === "bad");
  const losses = evaluation?.losses;
  return [
    { id: "pending", title: "pending pods", count: found.counts.pending, level: found.counts.pending ? "bad" : "good",
      note: evaluation ? "by cause, with the cheapest change that helps" : "by the reason that their scheduler gives; the causes follow",
      rows: evaluation ? causeRows(evaluation, page) : found.pending.map((row) => reasonRow(row, page)),
      empty: "No pod waits for a node." },
    { id: "budgets", title: "budgets that stop every drain", count: evaluation ? evaluation.budgets.length : null, level: level(evaluation, evaluation?.budgets.length ? "warn" : "good"),
      note: evaluation?.undrainable ? `${number(evaluation.undrainable)} of ${counted(found.counts.nodes, "node")} cannot be drained now` : "",
      rows: evaluation ? evaluation.budgets.map((row) => budgetRow(row, page)) : [],
      empty: evaluation ? "Every budget allows a disruption: no budget stops a drain." : waits },
    { id: "losses", title: "workloads short if one node is lost", count: losses ? losses.number : null, level: level(losses, losses?.number ? "bad" : "good"),
      note: losses ? lossNote(losses) : "",
      rows: losses ? [...losses.workloads.map((row) => lossRow(row, page)), ...losses.groups.map((row) => groupRow(row, page))] : [],
      empty: losses ? "If any one node, zone or node pool is lost, every pod finds a place." : waits },
    { id: "nodes", title: "nodes not ready or under pressure", count: bad.reduce((sum, row) => sum + row.number, 0), level: bad.length ? "bad" : "good",
      note: "and those that are cordoned or tainted", rows: found.nodes.map((row) => nodeRow(row, page)),
      empty: found.counts.nodes ? "Every node is ready, without pressure, cordon or taint." : "There are no nodes." },
    { id: "preemptions", title: "preemptions", count: preemptions.length, level: preemptions.length ? "warn" : "good",
      note: preemptions.length ? "the last ones first" : "", rows: preemptions.map((row) => preemptionRow(row, page, found.now)),
      empty: "No preemption is on record. Events are usually kept for an hour." },
  ];
}

function lossNote({ nodes, unplaced, preempts }) {
  const parts = [unplaced ? `pods find no place after the loss of ${number(unplaced)} of ${counted(nodes, "node")}` : "", preempts ? `after that of ${number(preempts)} they preempt others` : ""];
  return parts.filter((part) => part).join("; ");
}

// A row: its lines, and buttons behind them.
function row(level, lines, buttons) {
  return element("li", { className: `problem ${level}` },
    element("div", { className: "lines" }, ...lines.filter((line) => line).map((line, place) => element("p", { className: place ? "faint" : "" }, ...[line].flat()))),
    element("div", { className: "row-actions" }, ...buttons.filter((made) => made)));
}

// Names in a line, as links to what `open` shows; those beyond them counted.
function names({ number: count, names: some }, open) {
  const links = some.flatMap((name, place) => [place ? ", " : "", open ? element("button", { type: "button", className: "link", onclick: () => open(name) }, name) : name]);
  return count > some.length ? [...links, ` and ${number(count - some.length)} more`] : links;
}

const pods = (some, page) => names(some, (name) => page.explain(name));
const nodes = (some, page) => names(some, page.about.mode === "control-plane" ? (name) => page.go("objects", "nodes", "-", name) : null);

function explaining(target, page) {
  return button("Explain", `podium explain ${target}`, () => page.explain(target));
}

function draining(node, page) {
  return button("Drain", `What happens if ${node} is drained? Nothing is changed by asking`, () => page.askPlan("drain", { nodes: node }));
}

function failing(values, what, page) {
  return button("What if it fails", `What happens if ${what} fails?`, () => page.askPlan("fail", values));
}

function reasonRow(given, page) {
  return row("bad", [[element("strong", {}, counted(given.number, "pod")), ` ${given.reason}`], pods(given, page)], [explaining(given.names[0], page)]);
}

function causeRows({ causes, fitting, refused }, page) {
  const rows = causes.map((cause) => {
    const { fix } = cause;
    const harm = fix?.preempted ? `, and preempts ${number(fix.preempted)}` : "";
    return row("bad", [
      [element("strong", {}, counted(cause.number, "pod")), ` of ${cause.workloads.names[0]}${cause.workloads.number > 1 ? ` and ${counted(cause.workloads.number - 1, "other workload")}` : ""}: ${cause.reason}`],
      fix ? [element("b", { className: "fix" }, "→ "), `${fix.text} places ${number(fix.placed)} of ${number(cause.number)}${harm}`] : "No single change that was tried places them.",
      pods(cause, page),
    ], [explaining(cause.names[0], page),
      fix?.question ? button("Try the fix", `Play it: ${fix.text}. Nothing is changed by asking`, () => page.askPlan(fix.question, fix.values)) : null]);
  });
  if (fitting.number) {
    rows.push(row("note", [[element("strong", {}, counted(fitting.number, "pod")), " would get a node now without a change"], pods(fitting, page)], [explaining(fitting.names[0], page)]));
  }
  const absent = refused.map(({ workload, pods: count, why }) => row("bad", [[element("strong", {}, counted(count, "pod")), ` of ${workload} not created: ${why}`]], []));
  return [...rows, ...absent];
}

function budgetRow(given, page) {
  const [node] = given.names;
  return row("warn", [[element("strong", {}, given.budget), ` allows no disruption: ${budgetText(given.status)}`], ["stops the drain of ", ...nodes(given, page)]],
    [draining(node, page), failing({ nodes: node }, node, page)]);
}

function budgetText({ currentHealthy = 0, desiredHealthy = 0, expectedPods = 0 }) {
  const never = desiredHealthy >= expectedPods ? ", so that no drain can ever pass" : "";
  return `${number(currentHealthy)} of ${counted(expectedPods, "pod")} are ready, and ${number(desiredHealthy)} must be${never}`;
}

function lossRow(given, page) {
  const where = `the loss of ${given.nodes === 1 ? "" : `any of ${number(given.nodes)} nodes, at worst of `}${given.worst}`;
  return row("bad", [[element("strong", {}, given.workload), ` is short of ${counted(given.pods, "pod")} after ${where}`]],
    [explaining(page.targetOf(given.workload), page), draining(given.worst, page), failing({ nodes: given.worst }, given.worst, page)]);
}

function groupRow(given, page) {
  const rest = given.number > 1 ? ` and ${counted(given.number - 1, "other workload")}` : "";
  const effect = given.unplaced ? `leaves ${counted(given.unplaced, "pod")} of ${given.first}${rest} without a node` : `makes its pods preempt ${counted(given.preempted, "pod")}`;
  return row(given.unplaced ? "bad" : "warn", [[`The loss of ${given.scope} `, element("strong", {}, given.name), ` (${counted(given.nodes, "node")}) ${effect}`]],
    [failing({ selector: given.selector }, `${given.scope} ${given.name}`, page)]);
}

function nodeRow(given, page) {
  const [node] = given.names;
  return row(given.kind, [[element("strong", {}, counted(given.number, "node")), ` ${given.mark}`], nodes(given, page)],
    [draining(node, page), failing({ nodes: node }, node, page)]);
}

// The preemptions from their victims, the last first.
function preemptionsOf(victims) {
  const groups = [...Map.groupBy(victims, ({ preemptor, node }) => `${preemptor} ${node}`).values()];
  return groups.slice(0, MOST_PREEMPTIONS).map((group) => {
    const some = group.map(({ victim }) => victim).sort();
    return { ...group[0], victims: { number: some.length, names: some.slice(0, MOST_NAMES) } };
  });
}

function preemptionRow({ preemptor, node, victims, at }, page, now) {
  const when = at ? `${clock(at)}, ${ageText(at, now)} ago` : "time unknown";
  return row("warn", [[element("strong", {}, preemptor || "An unknown pod"), ` preempted ${counted(victims.number, "pod")}${node ? ` on ${node}` : ""}`], ["victims: ", ...names(victims)], when],
    [preemptor.includes("/") ? explaining(preemptor, page) : null, node ? failing({ nodes: node }, node, page) : null]);
}
