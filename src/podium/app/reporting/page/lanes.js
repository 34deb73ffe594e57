// Bars that lie beside one another in time share a lane; bars that overlap do not.

// Gives each of the intervals, which are in order of their beginning, the first lane that is free by then. Where more
// than `most` lanes are needed, it stops there.
export function lanesOf(intervals, most = Infinity) {
  const free = [], lanes = [];
  for (const { from, until } of intervals) {
    let lane = free.findIndex((ends) => ends <= from);
    if (lane < 0) {
      lane = free.length;
    }
    if (lane >= most) {
      return { lanes: [], count: most + 1 };
    }
    free[lane] = until;
    lanes.push(lane);
  }
  return { lanes, count: free.length };
}

// What is drawn of each node, made when it is first seen and kept.
export class NodeLanes {
  constructor(story) {
    this.story = story;
    this.kept = new Map();
    this.steps = new Map();
  }

  // The pods that were on a node, each with its lane.
  of(node) {
    let found = this.kept.get(node);
    if (!found) {
      const { pods } = this.story;
      const bars = [...this.story.podsOfNode.of(node)]
        .map((pod) => ({ pod, from: pods.scheduled[pod], until: pods.ended[pod] }))
        .filter((bar) => bar.until > bar.from)
        .sort((left, right) => left.from - right.from || pods.priority[right.pod] - pods.priority[left.pod] || left.pod - right.pod);
      const { lanes, count } = lanesOf(bars);
      bars.forEach((bar, place) => {
        bar.lane = lanes[place];
      });
      found = { bars, count };
      this.kept.set(node, found);
    }
    return found;
  }

  // How much of a resource is requested of a node from which moment on: `{moment, byClass}` in order.
  stepsOf(node, resource) {
    const key = `${node} ${resource}`;
    let found = this.steps.get(key);
    if (!found) {
      found = this.count(node, resource);
      if (this.steps.size > 4000) {
        this.steps.clear();
      }
      this.steps.set(key, found);
    }
    return found;
  }

  count(node, resource) {
    const { story } = this, changes = [];
    for (const { pod, from, until } of this.of(node).bars) {
      changes.push([from, story.classOf[pod], story.asks(pod, resource)]);
      if (until !== Infinity) {
        changes.push([until, story.classOf[pod], -story.asks(pod, resource)]);
      }
    }
    changes.sort((left, right) => left[0] - right[0]);
    return stepsFrom(changes, story.classes.length);
  }
}

// Sums by class from changes `[moment, class, amount]` in order of time.
export function stepsFrom(changes, classes) {
  const steps = [], sums = new Float64Array(classes);
  changes.forEach(([moment, place, by], index) => {
    sums[place] += by;
    if (index + 1 === changes.length || changes[index + 1][0] !== moment) {
      steps.push({ moment, byClass: sums.slice() });
    }
  });
  return steps;
}
