// Tables of an answer, and what it rests on.
import { element } from "./dom.js";
import { number } from "./formats.js";

const MOST = 200;
const SUBJECTS = ["node", "pod", "workload"];

// A table; a click on a row selects what it is about.
export function tableOf(table, onselect) {
  const head = element("tr", {}, ...table.headings.map((heading) => element("th", { scope: "col" }, heading)));
  const body = element("tbody");
  const add = (from, to) => {
    table.rows.slice(from, to).forEach((row, place) => body.append(rowOf(row, table.subjects[from + place], onselect)));
  };
  add(0, MOST);
  const section = element("section", { className: "table" }, element("h2", {}, table.title),
    table.note ? element("p", { className: "faint" }, table.note) : null,
    element("div", { className: "scroll" }, element("table", {}, element("thead", {}, head), body)));
  if (table.rows.length > MOST) {
    const more = element("button", { type: "button" }, `Show all ${number(table.rows.length)}`);
    more.addEventListener("click", () => {
      add(MOST, table.rows.length);
      more.remove();
    });
    section.append(more);
  }
  return section;
}

function rowOf(row, subject, onselect) {
  const cells = row.map((cell) => {
    const is_number = typeof cell === "number";
    return element("td", { className: is_number ? "number" : "" }, cell === null ? "" : is_number ? number(cell) : cell);
  });
  const made = element("tr", {}, ...cells);
  const [kind, name] = splitSubject(subject);
  if (kind && onselect) {
    const open = element("button", { type: "button", className: "link" }, ...made.cells[0].childNodes);
    made.cells[0].replaceChildren(open);
    made.classList.add("subject");
    made.addEventListener("click", () => onselect(kind, name));
  }
  return made;
}

// "node a" is ["node", "a"]; what begins with no kind is ["", ""].
function splitSubject(subject) {
  const space = subject ? subject.indexOf(" ") : -1, kind = space < 0 ? "" : subject.slice(0, space);
  return SUBJECTS.includes(kind) ? [kind, subject.slice(space + 1)] : ["", ""];
}

// What an answer rests on; null for nothing.
export function basisOf(restsOn) {
  if (!restsOn.length) {
    return null;
  }
  return element("section", { className: "basis" }, element("h2", {}, "Rests on"),
    element("ul", {}, ...restsOn.map((line) => element("li", {}, line))));
}
