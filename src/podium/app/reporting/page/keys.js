// The keyboard: all that the pointer can do.
import { element } from "./dom.js";

export const KEYS = [
  ["← →", "the event before, the next one; with Shift ten of them"],
  ["Home End", "the beginning, the end"],
  ["↑ ↓", "the node above, below"],
  ["Enter", "select the node, or let go of it"],
  ["i o 0", "zoom in, out, show all of the time; the wheel with Ctrl, too"],
  ["[ ]", "show what was before, what comes next; the wheel with Shift, too"],
  ["+ −", "higher, lower rows"],
  ["t", "the axis by time, or by order of events"],
  ["/", "search"],
  ["p", "play"],
  ["d", "light or dark"],
  ["Esc", "nothing is selected"],
  ["?", "these keys"],
];

// Does what a key stands for; whether it stands for anything.
export function press(page, view, event) {
  const { scene } = page, far = event.shiftKey ? 10 : 1, at = scene.moments[view.place];
  const actions = {
    ArrowLeft: () => scene.goTo(view.place, at - far),
    ArrowRight: () => scene.goTo(view.place, at + far),
    Home: () => scene.goTo(view.place, -1),
    End: () => scene.goTo(view.place, view.story.eventCount - 1),
    ArrowUp: () => toRow(scene, view, scene.row - 1),
    ArrowDown: () => toRow(scene, view, scene.row + 1),
    Enter: () => scene.rows[scene.row] && scene.select("node", scene.rows[scene.row].name),
    i: () => scene.zoom(0.5, scene.cursorShare(view.place)),
    o: () => scene.zoom(2, scene.cursorShare(view.place)),
    "[": () => scene.pan(-0.5),
    "]": () => scene.pan(0.5),
    0: () => scene.set({ window: { from: 0, to: 1 } }),
  };
  return run(actions, event) || pressAnywhere(page, event);
}

// Keys that hold wherever the focus is.
export function pressAnywhere(page, event) {
  const actions = {
    "+": () => page.resize(1.4),
    "=": () => page.resize(1.4),
    "-": () => page.resize(1 / 1.4),
    t: () => page.turnAxis(),
    "/": () => page.search.focus(),
    p: () => page.play(),
    d: () => page.turnTheme(),
    Escape: () => page.scene.select("", ""),
    "?": () => page.help.showModal(),
  };
  return run(actions, event);
}

function run(actions, event) {
  const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
  if (!action) {
    return false;
  }
  event.preventDefault();
  event.stopPropagation();
  action();
  return true;
}

function toRow(scene, view, row) {
  const bounded = Math.max(Math.min(row, scene.rows.length - 1), 0);
  scene.set({ row: bounded });
  view.show(bounded);
}

// The list of keys, as a dialog.
export function helpDialog() {
  const rows = KEYS.map(([keys, what]) => element("tr", {}, element("th", {}, keys), element("td", {}, what)));
  const close = element("button", { type: "button" }, "Close");
  const dialog = element("dialog", { className: "help" }, element("h2", {}, "Keys"), element("table", {}, ...rows), close);
  close.addEventListener("click", () => dialog.close());
  return dialog;
}
