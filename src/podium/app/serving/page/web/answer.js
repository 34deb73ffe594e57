// An answer as its picture: what it says in a line, then what else there is to say, and the drawing.
import { Compared } from "./drawing/compared.js";
import { DecisionPage } from "./drawing/decision.js";
import { element, fill } from "./drawing/dom.js";
import { listOf, tableOf } from "./drawing/tables.js";

// The page's theme for as long as a drawing lasts: who listens by it is forgotten with it.
class Lent {
  constructor(theme) {
    this.theme = theme;
    this.listeners = [];
  }

  get name() {
    return this.theme.name;
  }

  on(listener) {
    this.listeners.push(listener);
    this.theme.on(listener);
  }

  off(listener) {
    this.theme.off(listener);
  }

  turn() {
    this.theme.turn();
  }

  end() {
    this.listeners.forEach((listener) => this.theme.off(listener));
  }
}

export class Answer {
  constructor(theme) {
    this.theme = theme;
    this.element = element("div", { className: "answer" });
    this.stories = null;
    this.decision = null;
  }

  // Shows a picture; `beside` are elements behind its drawing.
  show(picture, ...beside) {
    this.clear();
    this.lent = new Lent(this.theme);
    const drawing = element("div", {});
    const select = (kind, name) => (this.stories ? this.stories.page.select(kind, name) : this.decision?.select(name));
    fill(this.element,
      element("h2", { className: "headline" }, picture.headline),
      ...picture.facts.map((fact) => element("p", { className: "fact" }, fact)),
      element("div", { className: "tables" }, ...picture.tables.map((table) => tableOf(table, select))),
      drawing, ...beside,
      listOf(picture.changesTitle, picture.changes, "each line is enough by itself"),
      listOf("Rests on", picture.restsOn, ""),
      picture.text ? disclosure("As in the terminal", picture.text) : null);
    if (picture.decision && picture.decision.nodes.length) {
      this.decision = new DecisionPage(picture.decision, this.lent);
      fill(drawing, this.decision.element);
      this.decision.start();
    } else if (picture.stories.length) {
      this.stories = new Compared(picture.stories, this.lent);
      fill(drawing, this.stories.element);
      this.stories.page.start();
    }
  }

  // Shows nothing, and lets go of what was drawn.
  clear() {
    this.stories?.page.dispose();
    if (this.decision) {
      document.removeEventListener("keydown", this.decision.keys);
    }
    this.lent?.end();
    this.stories = this.decision = null;
    fill(this.element);
  }
}

// A text that is shown when it is asked for.
export function disclosure(title, text) {
  return element("details", {}, element("summary", {}, title), element("pre", {}, text));
}
