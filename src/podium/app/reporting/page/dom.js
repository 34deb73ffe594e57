// Elements without markup, where text is always text; and the choice of light or dark colors.

// An element with properties, listeners (`on...`), attributes (`aria-...`, `data-...`, `role`) and children.
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) {
      made.addEventListener(name.slice(2), value);
    } else if (name.includes("-") || name === "role" || name === "for") {
      made.setAttribute(name, value);
    } else {
      made[name] = value;
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

// Puts children in the place of those that an element has.
export function fill(parent, ...children) {
  parent.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== ""));
}

// A button; `hint` is shown on hover and to screen readers.
export function button(text, hint, onclick) {
  return element("button", { type: "button", title: hint, onclick }, text);
}

// A labelled choice among `[value, text]`.
export function choice(label, options, chosen, onchange) {
  const made = element("select", { "aria-label": label, title: label, onchange: () => onchange(made.value) });
  for (const [value, text] of options) {
    made.append(element("option", { value, selected: value === chosen }, text));
  }
  return element("label", { className: "choice" }, element("span", {}, label), made);
}

export class Theme {
  constructor() {
    this.listeners = [];
    this.system = window.matchMedia("(prefers-color-scheme: dark)");
    this.chosen = "";
    this.system.addEventListener("change", () => this.apply());
    window.addEventListener("beforeprint", () => this.apply("light"));
    window.addEventListener("afterprint", () => this.apply());
    this.apply();
  }

  on(listener) {
    this.listeners.push(listener);
  }

  off(listener) {
    this.listeners = this.listeners.filter((each) => each !== listener);
  }

  turn() {
    this.chosen = this.name === "dark" ? "light" : "dark";
    this.apply();
  }

  apply(forced = "") {
    this.name = forced || this.chosen || (this.system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = this.name;
    this.listeners.forEach((listener) => listener(this.name));
  }
}
