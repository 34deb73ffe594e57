// The page of an answer: its data, headline, tables and picture.

import { DecisionPage } from "./decision.js";
import { DisruptionChart } from "./disruptions.js";
import { Theme, button, element, fill } from "./dom.js";
import { Compared } from "./run_page.js";
import { Chart } from "./sweep_chart.js";
import { basisOf, listOf, tableOf } from "./tables.js";

async function unpack(block) {
  if (block.dataset.form === "json") {
    return JSON.parse(block.textContent);
  }
  const packed = atob(block.textContent.trim());
  const bytes = new Uint8Array(packed.length);
  for (let place = 0; place < packed.length; place += 1) {
    bytes[place] = packed.charCodeAt(place);
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

async function start() {
  const picture = await unpack(document.getElementById("data"));
  const theme = new Theme();
  const page = { picture, theme };
  const header = element("header", { className: "head" }, element("h1", {}, picture.headline),
    element("span", { className: "group" }, button("◐", "Light or dark (d)", () => theme.turn()),
      button("Print", "Print this page", () => window.print())));
  const stories = element("div"), decision = element("div"), chart = element("div");
  const select = (kind, name) => (page.stories ? page.stories.select(kind, name) : page.decision?.select(name));
  fill(document.getElementById("page"), header,
    ...picture.facts.map((fact) => element("p", { className: "fact" }, fact)),
    chart,
    element("div", { className: "tables" }, ...picture.tables.map((table) => tableOf(table, select))),
    stories, decision,
    element("div", { className: "tables" }, ...picture.more.map((table) => tableOf(table, select))),
    listOf(picture.changesTitle, picture.changes, "each line is enough by itself"),
    listOf("Caveats", picture.caveats, ""),
    picture.text ? element("details", {}, element("summary", {}, "As in the terminal"), element("pre", {}, picture.text)) : null);
  draw(page, { stories, decision, chart });
  window.podium = page;
  document.documentElement.dataset.drawn = "true";
}

function draw(page, { stories, decision, chart }) {
  const { picture, theme } = page;
  if (picture.runs && picture.runs.figures.length) {
    page.chart = new Chart(picture.runs, theme);
    fill(chart, page.chart.element);
    page.chart.draw();
  }
  if (picture.disruptions) {
    page.disruptions = new DisruptionChart(picture.disruptions, theme);
    fill(chart, page.disruptions.element);
    page.disruptions.draw();
    window.addEventListener("beforeprint", () => page.disruptions.draw());
  }
  if (picture.decision && picture.decision.nodes.length) {
    page.decision = new DecisionPage(picture.decision, theme);
    fill(decision, page.decision.element);
    page.decision.start();
  }
  if (picture.stories.length) {
    const compared = new Compared(picture.stories, theme);
    fill(stories, compared.element);
    compared.page.start();
    Object.defineProperty(page, "stories", { get: () => compared.page });
    window.addEventListener("beforeprint", () => compared.page.toPaper());
    window.addEventListener("afterprint", () => compared.page.toScreen());
  }
}

start().catch((error) => {
  const page = document.getElementById("page");
  page.append(element("p", { className: "failure" }, `This picture cannot be drawn: ${error.message}`));
  throw error;
});
