// Where preemption would help: the candidates as the criteria order them, each with its victims.
import { element } from "./dom.js";
import { number } from "./formats.js";
import { few } from "./told.js";

const MOST = 100;
const CRITERIA = ["budget violations", "highest priority", "victims"];

export class Candidates {
  constructor(data, onselect) {
    this.rows = new Map();
    const body = element("tbody", {}, ...data.candidates.slice(0, MOST).map((candidate) => this.row(data, candidate, onselect)));
    const headings = ["", "node", ...(data.criteria || CRITERIA), ""];
    const more = data.candidates.length > MOST ? element("p", { className: "faint" }, `and ${number(data.candidates.length - MOST)} more`) : null;
    const decided = data.decidedBy ? `, decided by the ${data.decidedBy}` : "";
    this.element = element("section", { className: "table" }, element("h2", {}, `${number(data.candidates.length)} where preemption would help${decided}`),
      element("div", { className: "scroll" }, element("table", {},
        element("thead", {}, element("tr", {}, ...headings.map((heading) => element("th", { scope: "col" }, heading)))), body)), more);
  }

  row(data, candidate, onselect) {
    const name = element("button", { type: "button", className: "link" }, data.nodes[candidate.node]);
    const costs = data.criteria ? candidate.costs : [candidate.violations, candidate.priority === null ? "" : number(candidate.priority), number(candidate.count)];
    const cells = [candidate.node === data.taken ? "→" : "", name, ...costs, few(candidate.victims, 4)];
    const made = element("tr", { className: "subject", onclick: () => onselect(candidate.node) },
      ...cells.map((cell, place) => element("td", { className: place > 1 && place < cells.length - 1 ? "number" : "" }, cell)));
    this.rows.set(candidate.node, made);
    return made;
  }

  choose(node) {
    this.rows.forEach((row, each) => row.classList.toggle("chosen", each === node));
  }
}
