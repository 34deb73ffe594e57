// What would happen: the questions of `podium plan` about the cluster as it is. Nothing is changed by asking.
import { button, element, fill } from "./drawing/dom.js";
import { Answer, disclosure } from "./answer.js";
import { Asking } from "./asking.js";
import { Form } from "./form.js";
import { Messages } from "./messages.js";

// What an address says of a form; nothing, where it says it in no way that is known.
function valuesOf(text) {
  try {
    return Object.fromEntries(Object.entries(JSON.parse(text)).filter(([, value]) => typeof value === "string"));
  } catch {
    return {};
  }
}

export class PlansTab {
  constructor(page) {
    this.page = page;
    this.asking = new Asking(page.server);
    this.messages = new Messages();
    this.answer = new Answer(page.theme);
    this.hint = element("p", { className: "hint" }, "The answer is played on the cluster as it is at that moment; nothing is changed by asking.");
    this.aside = element("aside", {});
    this.element = element("div", { className: "asked" }, this.aside, element("div", {}, this.asking.element, this.messages.element, this.hint, this.answer.element));
    this.menu = element("nav", { className: "questions", "aria-label": "Questions" },
      ...page.about.plans.map((form) => {
        const made = button(form.title, `podium plan ${form.name}`, () => page.go("plans", form.name));
        made.dataset.question = form.name;
        return made;
      }));
    this.forms = new Map();
    this.answers = new Map();
  }

  // Shows a question's form, and the answer that it has had last.
  show([name, values]) {
    const form = this.page.about.plans.find((each) => each.name === name) || this.current || this.page.about.plans[0];
    this.current = form;
    if (!this.forms.has(form.name)) {
      const suggest = (what) => this.page.suggest(what);
      this.forms.set(form.name, new Form(form.fields, suggest, (given) => this.ask(form, given), form.rest));
    }
    for (const each of this.menu.children) {
      each.setAttribute("aria-current", each.dataset.question === form.name ? "true" : "false");
    }
    if (values) {
      this.forms.get(form.name).set(valuesOf(values));
    }
    fill(this.aside, this.menu, element("p", { className: "hint" }, form.told), this.forms.get(form.name).element);
    this.messages.clear();
    this.paint(this.answers.get(form.name));
  }

  // What is drawn does not outlive its sight.
  hide() {
    this.answer.clear();
  }

  async ask(form, values) {
    this.messages.clear();
    this.answer.clear();
    this.answers.delete(form.name);
    try {
      const answer = await this.asking.ask(form.name, values);
      if (answer) {
        this.answers.set(form.name, answer);
        if (this.current === form && this.element.isConnected) {
          this.paint(answer);
        }
      }
    } catch (error) {
      this.messages.bad(error);
    }
  }

  paint(answer) {
    this.hint.hidden = Boolean(answer);
    if (!answer) {
      this.answer.clear();
      return;
    }
    const { picture, scenario } = answer;
    this.answer.show(picture, scenario ? disclosure("The scenario that was played", JSON.stringify(scenario, null, 2)) : null);
  }
}
