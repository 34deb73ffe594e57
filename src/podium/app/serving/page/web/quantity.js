// Amounts of resources as Kubernetes writes them, and what a pod asks for in all.

const FORM = /^([-+]?\d*\.?\d+)(?:([eE][-+]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E))?$/;
const FACTORS = {
  n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

// A quantity of a resource as a whole number: of cpu in thousandths, of all else in units. What is none is 0.
export function amountOf(text, resource) {
  const found = FORM.exec(String(text).trim());
  if (!found) {
    return 0;
  }
  const value = Number(found[1] + (found[2] || "")) * (found[3] ? FACTORS[found[3]] : 1);
  return Math.ceil(Number((resource === "cpu" ? value * 1000 : value).toPrecision(15)));
}

// What a pod requests, as kube-scheduler counts it: its containers and side cars together, or an init container that
// wants more while it runs, and the overhead.
export function requestsOf(spec) {
  const all = {}, sideCars = {}, initial = {};
  for (const container of spec.containers || []) {
    add(all, amounts(container));
  }
  for (const container of spec.initContainers || []) {
    if (container.restartPolicy === "Always") {
      add(all, amounts(container));
      add(sideCars, amounts(container));
      most(initial, sideCars);
    } else {
      const needed = { ...sideCars };
      add(needed, amounts(container));
      most(initial, needed);
    }
  }
  most(all, initial);
  if (spec.resources?.requests) {
    Object.assign(all, whole(spec.resources.requests));
  }
  add(all, whole(spec.overhead || {}));
  return all;
}

function amounts(container) {
  const { requests = {}, limits = {} } = container.resources || {};
  return whole({ ...limits, ...requests });
}

// Quantities by resource as whole numbers.
export function whole(quantities) {
  return Object.fromEntries(Object.entries(quantities).map(([name, text]) => [name, amountOf(text, name)]));
}

function add(sums, more) {
  for (const [name, value] of Object.entries(more)) {
    sums[name] = (sums[name] || 0) + value;
  }
}

function most(highest, others) {
  for (const [name, value] of Object.entries(others)) {
    highest[name] = Math.max(highest[name] || 0, value);
  }
}
