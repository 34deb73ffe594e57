// The events below the nodes: a row for each kind, so that no colour has to tell them apart; stronger where there are more.
import { KINDS } from "./colours.js";

const ROW = 11;
export const STRIP_HEIGHT = KINDS.length * ROW + 6;

export class Strip {
  constructor(story) {
    this.story = story;
  }

  // Of what is selected, only the events: of the pods that are lit, and of the node.
  draw(context, axis, top, colours, lit, node) {
    const { story } = this, columns = Math.ceil(axis.right - axis.left) + 1;
    const counts = KINDS.map(() => new Float64Array(columns));
    const step = 2;
    for (let event = 0; event < story.eventCount; event += 1) {
      const pod = story.events.pod[event];
      if (lit && (pod < 0 || !lit[pod]) && (node < 0 || story.events.node[event] !== node)) {
        continue;
      }
      const x = axis.of(event) - axis.left;
      if (x >= 0 && x < columns) {
        counts[story.kind(event)][x - (x % step) | 0] += story.events.count[event];
      }
    }
    counts.forEach((row, place) => {
      const most = row.reduce((best, each) => Math.max(best, each), 1);
      context.fillStyle = colours[KINDS[place][0]];
      row.forEach((count, x) => {
        if (count) {
          const tall = Math.max((ROW - 2) * (0.35 + (0.65 * Math.log1p(count)) / Math.log1p(most)), 3);
          context.fillRect(axis.left + x, top + 3 + place * ROW + (ROW - 1 - tall), step, tall);
        }
      });
    });
  }

  // The events within some pixels of a place, those of the row's kind first to come.
  eventsAt(axis, x, y) {
    const kind = Math.floor((y - 3) / ROW);
    const first = axis.scene.axis === "time" ? axis.momentAt(x - 3) : axis.momentAt(x - 2);
    const found = [];
    for (let event = Math.max(first, 0); event < this.story.eventCount && axis.of(event) <= x + 3; event += 1) {
      if (axis.of(event) >= x - 3 && this.story.kind(event) === kind) {
        found.push(event);
      }
    }
    return found;
  }
}
