// Colours of light and dark pages. Those of priorities go from pale to strong in one hue, so that their order shows in
// grey, too; those of events are Okabe and Ito's, which people who see few colours can tell apart. No colour stands
// alone: grace periods are hatched, disruptions have a cross, kinds of events a row of their own.

const LIGHT = {
  paper: "#ffffff", band: "#f5f7f9", ink: "#1b2733", faint: "#5c6b7a", line: "#d5dce3", gone: "#e4e8ec",
  priorities: ["#bcd9ef", "#8dbde0", "#5b9bcb", "#3278b2", "#165590", "#08306b"],
  onPriorities: ["#102030", "#102030", "#102030", "#ffffff", "#ffffff", "#ffffff"],
  placed: "#00785a", disrupted: "#c04a00", refused: "#8a6100", other: "#8a4a72", cursor: "#c04a00", mark: "#1b2733",
};
const DARK = {
  paper: "#12181f", band: "#18202a", ink: "#e6edf3", faint: "#9aa9b8", line: "#2f3b48", gone: "#232d38",
  priorities: ["#29435f", "#35618e", "#4582bd", "#66a5dc", "#97c8f2", "#d0e8ff"],
  onPriorities: ["#ffffff", "#ffffff", "#ffffff", "#08121c", "#08121c", "#08121c"],
  placed: "#34c79d", disrupted: "#ff8a4c", refused: "#f0b429", other: "#d993bd", cursor: "#ff8a4c", mark: "#e6edf3",
};
export const MOST_CLASSES = LIGHT.priorities.length;

// The colours of a page that is "light" or "dark".
export function coloursOf(theme) {
  return theme === "dark" ? DARK : LIGHT;
}

// The place in the ramp of one of so many classes of priority.
export function shadeOf(place, classes) {
  return classes < 2 ? 2 : Math.round((place * (MOST_CLASSES - 1)) / (classes - 1));
}

// What happens, by the row of the strip of events in which it stands: its name, its colour, and the reasons.
export const KINDS = [
  ["placed", "placed", new Set(["Scheduled", "Started", "Finished", "Created", "Nominated"])],
  ["disrupted", "disrupted", new Set(["Preempted", "Evicted", "Killing", "Terminated", "Failed", "Deleted", "Crashed"])],
  ["refused", "refused", new Set(["FailedScheduling", "FailedCreate", "NominationCleared", "StepSkipped"])],
  ["other", "other", new Set()],
];

// The place in KINDS of a reason.
export function kindOf(reason) {
  const found = KINDS.findIndex(([, , reasons]) => reasons.has(reason));
  return found < 0 ? KINDS.length - 1 : found;
}

// A hatched pattern for a canvas.
export function hatch(context, colour, background) {
  const size = 8;
  const tile = new OffscreenCanvas(size, size);
  const drawn = tile.getContext("2d");
  if (background) {
    drawn.fillStyle = background;
    drawn.fillRect(0, 0, size, size);
  }
  drawn.strokeStyle = colour;
  drawn.lineWidth = 1.2;
  drawn.beginPath();
  for (const shift of [-size, 0, size]) {
    drawn.moveTo(shift - 1, size + 1);
    drawn.lineTo(shift + size + 1, -1);
  }
  drawn.stroke();
  return context.createPattern(tile, "repeat");
}
