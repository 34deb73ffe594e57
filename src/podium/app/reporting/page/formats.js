// Times, amounts and counts as people read them: the forms of Podium's text.

const UNITS = [[3600, "h"], [60, "m"], [1, "s"]];
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const BYTES = /^(memory|ephemeral-storage|hugepages-.*)$/;

// A duration as Go writes it: 90 is "1m30s".
export function duration(seconds) {
  if (seconds < 0) {
    return `-${duration(-seconds)}`;
  }
  if (seconds < 1) {
    return seconds === 0 ? "0s" : `${+(seconds * 1000).toPrecision(3)}ms`;
  }
  // Nobody needs the fractions of a long time.
  let left = seconds < 60 ? seconds : Math.round(seconds), text = "";
  for (const [size, unit] of UNITS) {
    const whole = size === 1 ? +left.toFixed(3) : Math.floor(left / size);
    if (whole) {
      text += `${whole}${unit}`;
    }
    left -= whole * size;
  }
  return text;
}

// A moment by the clock of the place where the page is read, with its date: "2026-11-29 12:03:10".
export function clock(moment) {
  const at = new Date(moment), two = (value) => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

const AGES = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

// How long ago a moment was, as kubectl has it, in one unit.
export function ageText(moment, now) {
  const seconds = Math.max(Math.floor((now - new Date(moment)) / 1000), 0);
  const [size, unit] = AGES.find(([step]) => seconds >= 2 * step || step === 1);
  return `${Math.floor(seconds / size)}${unit}`;
}

// A time from the start: "+1m30s"; "-1m30s" is before it.
export function since(seconds) {
  return seconds < 0 ? duration(seconds) : `+${duration(seconds)}`;
}

// An amount of a resource: 1500 of cpu is "1500m", 1073741824 of memory "1Gi".
export function amount(value, resource) {
  if (resource === "cpu") {
    return value % 1000 === 0 ? `${value / 1000}` : `${value}m`;
  }
  if (!BYTES.test(resource) || value < 1024) {
    return `${value}`;
  }
  const power = Math.min(Math.floor(Math.log2(value) / 10), BINARY.length - 1);
  return `${+(value / 2 ** (10 * power)).toFixed(2)}${BINARY[power]}`;
}

// A number with its thousands apart.
export function number(value) {
  return value.toLocaleString("en-US");
}

// A number with its noun, in the plural where it needs to be.
export function counted(value, noun) {
  return `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
}

// A share in percent.
export function percent(share) {
  return `${Math.round(share * 100)}%`;
}

// Text that fits so many characters: its middle is left out, since names differ at their ends.
export function shortened(text, most) {
  if (text.length <= most) {
    return text;
  }
  const head = Math.max(Math.floor((most - 1) / 2), 1);
  return `${text.slice(0, head)}…${text.slice(text.length - Math.max(most - 1 - head, 1))}`;
}

// What the names of many share at their end, from a dot on: ".eu-west-1.compute.internal"; "" for nothing. Names without
// a dot, as those of nodes that a plan adds, share nothing with others.
export function sharedEnd(all) {
  const names = all.filter((name) => name.includes("."));
  if (names.length < 2) {
    return "";
  }
  let end = names[0];
  for (const name of names) {
    let kept = 0;
    while (kept < end.length && kept < name.length && end[end.length - 1 - kept] === name[name.length - 1 - kept]) {
      kept += 1;
    }
    end = end.slice(end.length - kept);
    if (!end) {
      return "";
    }
  }
  const dot = end.indexOf(".");
  const shared = dot < 0 ? "" : end.slice(dot);
  return shared.length > 3 && names.every((name) => name.length > shared.length) ? shared : "";
}

// A name without the end that others share.
export function withoutEnd(name, end) {
  return end && name.endsWith(end) ? name.slice(0, -end.length) : name;
}

// What the names of many share at their beginning, up to a dash or a dot: "gke-shop-general-"; "" for nothing.
export function sharedStart(names) {
  if (names.length < 2) {
    return "";
  }
  let start = names[0];
  for (const name of names) {
    let kept = 0;
    while (kept < start.length && start[kept] === name[kept]) {
      kept += 1;
    }
    start = start.slice(0, kept);
  }
  const shared = start.slice(0, Math.max(start.lastIndexOf("-"), start.lastIndexOf(".")) + 1);
  return shared.length > 3 && names.every((name) => name.length > shared.length) ? shared : "";
}

// Names in the order in which people count: node-2 before node-10.
export const NATURAL = new Intl.Collator("en", { numeric: true });
