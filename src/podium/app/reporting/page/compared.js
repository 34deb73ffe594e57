// Runs of which two at a time are seen side by side: which of them, is chosen above.
import { choice, element, fill } from "./dom.js";
import { StoryPage } from "./page.js";
import { Story } from "./story.js";

export class Compared {
  constructor(data, theme) {
    this.theme = theme;
    this.stories = data.map((each) => new Story(each));
    this.shown = [0, Math.min(1, this.stories.length - 1)];
    this.holder = element("div");
    this.element = this.holder;
    if (this.stories.length > 2) {
      const options = this.stories.map((story, place) => [String(place), story.name]);
      const sides = ["left", "right"].map((side, at) =>
        choice(side, options, String(this.shown[at]), (value) => {
          this.shown[at] = Number(value);
          this.draw();
        }));
      this.element = element("div", {}, element("div", { className: "controls" }, ...sides), this.holder);
    }
    this.draw();
  }

  // Lets go of what outlives the page's elements.
  dispose() {
    this.page.dispose();
  }

  draw() {
    const before = this.page, different = [...new Set(this.shown)];
    this.page = new StoryPage(different.map((place) => this.stories[place]), this.theme, before);
    before?.dispose();
    fill(this.holder, this.page.element);
    if (this.holder.isConnected) {
      this.page.start();
    }
  }
}
