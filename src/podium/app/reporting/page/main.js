// The page of an answer: what it says, then what it shows.
import { button, element, fill } from "./dom.js";
import { StoryPage } from "./page.js";
import { basisOf, tableOf } from "./tables.js";
import { Theme } from "./theme.js";
import { unpack } from "./unpack.js";

async function start() {
  const picture = await unpack(document.getElementById("data"));
  const theme = new Theme();
  const stories = picture.stories.length ? new StoryPage(picture.stories, theme) : null;
  const select = stories ? (kind, name) => stories.select(kind, name) : null;
  const header = element("header", { className: "head" }, element("h1", {}, picture.headline),
    element("span", { className: "group" }, button("◐", "Light or dark (d)", () => theme.turn()),
      button("Print", "Print this page", () => window.print())));
  fill(document.getElementById("page"), header,
    ...picture.facts.map((fact) => element("p", { className: "fact" }, fact)),
    ...picture.tables.map((table) => tableOf(table, select)),
    stories && stories.element,
    basisOf(picture.restsOn),
    picture.text ? element("details", {}, element("summary", {}, "As in the terminal"), element("pre", {}, picture.text)) : null);
  if (stories) {
    stories.scene.set({ size: true });
    stories.scene.flush();
    window.addEventListener("beforeprint", () => stories.scene.flush());
  }
  window.podium = { picture, stories, theme };
  document.documentElement.dataset.drawn = "true";
}

start().catch((error) => {
  const page = document.getElementById("page");
  page.append(element("p", { className: "failure" }, `This picture cannot be drawn: ${error.message}`));
  throw error;
});
