// How many pods of a workload were ready over time, and how many it wanted.
import { coloursOf } from "./colours.js";
import { element } from "./dom.js";

const WIDE = 300;
const HIGH = 54;

// A small canvas: what is ready as an area, what is wanted as a line, time where it stands.
export function sparkline(story, workload, scene) {
  const canvas = element("canvas", { className: "spark", role: "img" }), ratio = window.devicePixelRatio || 1;
  canvas.setAttribute("aria-label", `ready pods over time, ${workload.lowestReady} at the lowest of ${workload.wanted} wanted`);
  [canvas.width, canvas.height] = [WIDE * ratio, HIGH * ratio];
  canvas.style.width = `${WIDE}px`;
  canvas.style.height = `${HIGH}px`;
  const context = canvas.getContext("2d"), colours = coloursOf(scene.theme), { series } = workload;
  context.scale(ratio, ratio);
  const most = Math.max(...series.map((point) => Math.max(point.ready, point.wanted)), 1);
  const x = (time) => Math.min(Math.max(time / (scene.span || 1), 0), 1) * WIDE, y = (value) => HIGH - 2 - (value / most) * (HIGH - 8);
  series.forEach((point, place) => {
    const left = x(point.time), right = place + 1 < series.length ? x(series[place + 1].time) : WIDE;
    context.fillStyle = colours.priorities[2];
    context.fillRect(left, y(point.ready), Math.max(right - left, 1), HIGH - y(point.ready));
    context.fillStyle = point.ready < point.wanted ? colours.disrupted : colours.ink;
    context.fillRect(left, y(point.wanted) - 1, Math.max(right - left, 1), 1.5);
  });
  context.fillStyle = colours.cursor;
  context.fillRect(x(scene.time), 0, 1, HIGH);
  return canvas;
}
