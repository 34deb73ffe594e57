// Light or dark: as the system has it, until somebody turns it; always light on paper.

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
