// Who had to go for whom: arrows from the pod that came to those that it preempted.

const MOST = 150;

export class Arrows {
  constructor(view) {
    this.view = view;
  }

  // All arrows between bars in sight, unless there are too many to follow.
  drawAll(context, colours) {
    const { view } = this, { story } = view, near = [];
    for (const preemption of story.preemptions) {
      const row = view.scene.rowOfName.get(story.nodeName(story.pods.node[preemption.victim]));
      const top = view.above + row * view.rowHeight - view.scroll;
      if (top + view.rowHeight >= view.above && top <= view.below) {
        near.push(preemption);
      }
      if (near.length > MOST) {
        return;
      }
    }
    for (const { event, victim, by } of near) {
      const to = view.placeOf(victim), x = view.axis.of(event);
      if (!to || x < view.axis.left - 1 || x > view.axis.right) {
        continue;
      }
      const from = by < 0 ? null : view.placeOf(by, true);
      if (!from && !view.rows.laneHeight(story.pods.node[victim], view.rowHeight)) {
        // An area has a line for the grace period, and a cross at its end.
        continue;
      }
      context.globalAlpha = !view.lit || view.lit[victim] ? 0.8 : 0.1;
      this.arrow(context, colours, x, from ? from.top + from.height : to.top - 12, x, to.top + Math.min(to.height, 10) / 2);
      context.globalAlpha = 1;
    }
  }

  // The arrows of the pod under the pointer, from where it waits, too.
  drawHover(context, colours) {
    const { view } = this, { hover, selection } = view.scene, { story } = view;
    const pods = new Set();
    if (hover && hover.place === view.place && hover.pod >= 0) {
      pods.add(hover.pod);
    }
    if (selection && selection.kind === "pod") {
      story.find(selection).pods.forEach((pod) => pods.add(pod));
    }
    for (const pod of pods) {
      this.outline(context, colours, pod);
    }
    for (const preemption of story.preemptions) {
      if (pods.has(preemption.victim) || pods.has(preemption.by)) {
        this.draw(context, colours, preemption, 1, true);
      }
    }
  }

  outline(context, colours, pod) {
    const { view } = this;
    for (const place of [view.placeOf(pod), view.placeOf(pod, true)]) {
      if (place && place.top + place.height > 0 && place.top < view.below) {
        context.strokeStyle = colours.mark;
        context.lineWidth = 2;
        const left = Math.max(place.left, view.axis.left);
        context.strokeRect(left - 1, place.top - 1, Math.max(Math.min(place.right, view.axis.right) - left, 2) + 2, place.height + 2);
      }
    }
  }

  draw(context, colours, { event, victim, by }, alpha, fromWaiting) {
    const { view } = this, to = view.placeOf(victim);
    const comes = by < 0 ? null : view.placeOf(by), waits = by < 0 || !fromWaiting ? null : view.placeOf(by, true);
    if (!to || (!comes && !waits)) {
      return;
    }
    const x = view.axis.of(event);
    if (x < view.axis.left - 1 || x > view.axis.right + 1) {
      return;
    }
    context.globalAlpha = alpha;
    if (waits) {
      this.arrow(context, colours, x, waits.top + waits.height, x, to.top + Math.min(to.height, 10) / 2);
    }
    const isBeside = by >= 0 && view.story.pods.node[by] === view.story.pods.node[victim];
    if (comes && !isBeside) {
      this.arrow(context, colours, comes.left, comes.top + comes.height / 2, x + 1, to.top + to.height / 2);
    }
    context.globalAlpha = 1;
  }

  arrow(context, colours, fromX, fromY, toX, toY) {
    const isDown = Math.abs(toX - fromX) < 4, bend = isDown ? 16 : Math.min(Math.abs(toX - fromX) / 3, 40);
    context.strokeStyle = colours.disrupted;
    context.fillStyle = colours.disrupted;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(fromX, fromY);
    context.bezierCurveTo(fromX + (isDown ? bend : -bend), fromY, toX + bend, toY, toX, toY);
    context.stroke();
    context.beginPath();
    context.moveTo(toX, toY);
    context.lineTo(toX + 6, toY - 4);
    context.lineTo(toX + 6, toY + 4);
    context.fill();
  }
}
