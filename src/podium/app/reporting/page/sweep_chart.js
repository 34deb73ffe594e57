// The figures of a sweep: a row for each combination of settings, a mark for each run.

import { coloursOf } from "./colours.js";
import { choice, element, fill } from "./dom.js";
import { shortened } from "./formats.js";

const ROW = 26;
const AXIS = 24;
const MOST = 200;

export class Chart {
  constructor(runs, theme) {
    this.runs = runs;
    this.theme = theme;
    this.figure = Math.max(runs.figures.indexOf("preempted"), 0);
    const options = runs.figures.map((name, place) => [String(place), name]);
    this.canvas = element("canvas", { role: "img" });
    this.tip = element("p", { className: "faint" });
    const pick = choice("figure", options, String(this.figure), (value) => {
      this.figure = Number(value);
      this.draw();
    });
    this.box = element("div", { className: "chart" }, this.canvas);
    this.element = element("section", { className: "table" }, element("header", { className: "controls" }, element("h2", {}, "By settings"), pick), this.box, this.tip);
    theme.on(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.box);
    if (runs.settings.length > MOST) {
      this.tip.textContent = `the first ${MOST} of ${runs.settings.length.toLocaleString("en-US")} combinations`;
    }
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
  }

  // The runs of each combination, with their values.
  groups() {
    const { runs } = this, found = runs.settings.map(() => []);
    runs.places.forEach((place, run) => {
      const value = runs.values[run][this.figure];
      if (value !== null) {
        found[place].push({ value, seed: runs.seeds[run] });
      }
    });
    return found;
  }

  draw() {
    const width = this.box.clientWidth, groups = this.groups(), colours = coloursOf(this.theme.name);
    if (!width) {
      return;
    }
    const shown = groups.slice(0, MOST), height = shown.length * ROW + AXIS, ratio = window.devicePixelRatio || 1, context = this.canvas.getContext("2d");
    [this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const left = Math.min(Math.max(width * 0.3, 90), 420), right = width - 40;
    const values = shown.flat().map((each) => each.value);
    const most = values.reduce((best, each) => Math.max(best, each), 0), least = values.reduce((best, each) => Math.min(best, each), 0);
    this.x = (value) => left + ((value - least) / (most - least || 1)) * (right - left);
    this.drawAxis(context, colours, least, most, height);
    shown.forEach((group, place) => this.drawGroup(context, colours, group, place, left));
    const name = this.runs.figures[this.figure];
    this.canvas.setAttribute("aria-label", shown.map((group, place) => `${this.runs.settings[place]}: ${name} ${text(mean(group))}`).join("; "));
  }

  drawAxis(context, colours, least, most, height) {
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (let tick = 0; tick <= 4; tick += 1) {
      const value = least + ((most - least) * tick) / 4, x = this.x(value);
      context.fillStyle = colours.line;
      context.fillRect(Math.round(x), 0, 1, height - AXIS + 4);
      context.fillStyle = colours.faint;
      const label = text(value);
      context.fillText(label, x - context.measureText(label).width / 2, height - AXIS / 2);
    }
  }

  drawGroup(context, colours, group, place, left) {
    const middle = place * ROW + ROW / 2;
    context.fillStyle = colours.ink;
    context.font = "12px system-ui, sans-serif";
    context.fillText(shortened(this.runs.settings[place], Math.floor((left - 16) / 6.6)), 4, middle);
    if (!group.length) {
      return;
    }
    context.fillStyle = colours.priorities[1];
    const zero = this.x(0), at = this.x(mean(group));
    context.fillRect(Math.min(zero, at), middle - 6, Math.max(Math.abs(at - zero), 1), 12);
    context.strokeStyle = colours.mark;
    context.lineWidth = 1.3;
    for (const { value } of group) {
      context.beginPath();
      context.arc(this.x(value), middle, 3.5, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  hover(event) {
    const box = this.canvas.getBoundingClientRect(), place = Math.floor((event.clientY - box.top) / ROW);
    const group = this.groups()[place];
    fill(this.tip, group && group.length ? `${this.runs.settings[place]}: mean ${text(mean(group))}; by seed ` +
      group.slice(0, 12).map(({ seed, value }) => `${seed}: ${text(value)}`).join(", ") : "");
  }
}

function mean(group) {
  return group.length ? group.reduce((sum, each) => sum + each.value, 0) / group.length : 0;
}

function text(value) {
  return (+value.toPrecision(4)).toLocaleString("en-US");
}
