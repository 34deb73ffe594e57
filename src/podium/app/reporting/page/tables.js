// Tables and lists of an answer.
import { element } from "./dom.js";
import { number } from "./formats.js";

const MOST = 200;
const SUBJECTS = ["node", "pod", "workload"];

// A table; a click on a row selects what it is about.
export function tableOf(table, onselect) {
  const isNumber = (column) => table.rows.length > 0 && table.rows.every((row) => typeof row[column] !== "string" || row[column] === "");
  const head = table.headings.some((heading) => heading)
    ? element("thead", {}, element("tr", {}, ...table.headings.map((heading, column) =>
        element("th", { scope: "col", className: isNumber(column) && table.rows.some((row) => typeof row[column] === "number") ? "number" : "" }, heading))))
    : null;
  const body = element("tbody");
  const add = (from, to) => {
    table.rows.slice(from, to).forEach((row, place) => body.append(rowOf(row, table.subjects[from + place], onselect)));
  };
  add(0, MOST);
  const section = element("section", { className: "table" }, element("h2", {}, table.title),
    table.note ? element("p", { className: "faint" }, table.note) : null,
    element("div", { className: "scroll" }, element("table", {}, head, body)));
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

// Lines under a title; null for none.
export function listOf(title, lines, note) {
  if (!lines.length) {
    return null;
  }
  return element("section", { className: "basis" }, element("h2", {}, title), note ? element("p", { className: "faint" }, note) : null,
    element("ul", {}, ...lines.map((line) => element("li", {}, line))));
}
