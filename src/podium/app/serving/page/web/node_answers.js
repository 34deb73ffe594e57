// What the answers to questions say about each node, for the grid: a scale, and for each node a place in it and words.

import { counted } from "./drawing/formats.js";

// Where the shades of numbers of pods begin.
const STEPS = [1, 2, 5, 10, 20, 50];
const OTHER = ["another obstacle", "faint"];
const OBSTACLES = {
  resource: ["lacks room", "disrupted"],
  "too-large": ["lacks room", "disrupted"],
  taint: ["has a taint", "refused"],
  selection: ["is not selected", "other"],
};

// A scale of which the first parts are colours by name, and all others shades for numbers of pods, most of them last.
function scaleOf(parts, shaded, most) {
  const used = STEPS.filter((step) => step <= Math.max(most, 1));
  const shades = used.map((step, place) => {
    const next = used[place + 1];
    return [next === undefined ? `${shaded} ${step} or more` : next - step > 1 ? `${shaded} ${step} to ${next - 1}` : `${shaded} ${step}`, place];
  });
  return { scale: [...parts, ...shades], placeOf: (pods) => parts.length + used.findLastIndex((step) => pods >= step) };
}

function most(numbers) {
  return Math.max(0, ...new Set(numbers));
}

const READERS = {
  fit({ table }) {
    const count = (row) => row.fits ?? row.pods;
    const { scale, placeOf } = scaleOf([["none fits", "refused"]], "fit:", most(table.map(count)));
    const of = table.map((row) => [row.node, [count(row) ? placeOf(count(row)) : 0, `${counted(count(row), "pod")} more${row.limit ? `; limit: ${row.limit}` : ""}`]]);
    return { scale, of: new Map(of) };
  },
  pending({ placed, obstacles }) {
    const types = [...new Set(Object.values(obstacles).map(([type]) => type))].map((type) => OBSTACLES[type] || OTHER);
    const texts = [...new Map(types).keys()];
    const scale = [["no pod is waiting for it", "gone"], ["takes pending pods", "placed"], ...new Map(types)];
    const of = new Map(Object.entries(obstacles).map(([node, [type, text]]) => [node, [2 + texts.indexOf((OBSTACLES[type] || OTHER)[0]), text]]));
    Map.groupBy(placed, ({ node }) => node).forEach((pods, node) => of.set(node, [1, `takes ${pods.map(({ pod }) => pod).slice(0, 3).join(", ")}${pods.length > 3 ? " and more" : ""}`]));
    return { scale, of };
  },
  survive({ table }) {
    const of = new Map();
    Map.groupBy(table, ({ node }) => node).forEach((pods, node) => {
      const lost = pods.filter(({ survives }) => survives === "no");
      of.set(node, [lost.length ? 2 : 1, lost.length ? `${counted(lost.length, "pod")} of it preempted for ${lost[0].preemptor}` : `${counted(pods.length, "pod")} of it, all survive`]);
    });
    return { scale: [["none of its pods", "gone"], ["its pods survive", "placed"], ["pods of it are preempted", "disrupted"]], of };
  },
  fail({ changed, pods: [without = {}, after = {}] }) {
    const gains = Object.entries(after).map(([node, pods]) => [node, pods - (without[node] || 0)]);
    const { scale, placeOf } = scaleOf([["as without the failure", "gone"], ["fails", "disrupted"]], "more pods:", most(gains.map(([, gain]) => gain)));
    const of = new Map(gains.filter(([, gain]) => gain > 0).map(([node, gain]) => [node, [placeOf(gain), `takes ${counted(gain, "pod")} more`]]));
    Object.entries(changed).forEach(([node, change]) => of.set(node, [1, change]));
    return { scale, of };
  },
};

// What an answer says about nodes; null for questions whose answers are not about nodes.
export function nodesOf(name, { onNodes, picture }) {
  return READERS[name] && onNodes ? { ...READERS[name](onNodes), title: picture.headline } : null;
}
