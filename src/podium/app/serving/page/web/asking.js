// A question on its way: how far it is, and its answer.
import { button, element, fill } from "./drawing/dom.js";
import { percent } from "./drawing/formats.js";
import { lines, Refusal } from "./api.js";

export class Asking {
  constructor(server) {
    this.server = server;
    this.bar = element("progress", { max: 1, value: 0 });
    this.told = element("span", {});
    this.element = element("div", { className: "progress", role: "status" }, this.bar, this.told,
      button("Stop", "Ask no longer", () => this.stop()));
    this.element.hidden = true;
  }

  stop() {
    this.stopping?.abort();
  }

  // The answer to a question; null for one that was stopped, or overtaken by another.
  async ask(question, values) {
    this.stop();
    const stopping = (this.stopping = new AbortController());
    this.show(0, "asking");
    this.element.hidden = false;
    try {
      const body = JSON.stringify({ question, values });
      const reply = await this.server.send("POST", "/ui/ask", { body, signal: stopping.signal });
      for await (const events of lines(reply)) {
        const told = events.at(-1);
        if (told.error !== undefined) {
          throw new Refusal(0, "", told.error);
        }
        if (told.answer) {
          return told.answer;
        }
        this.show(told.progress, told.what);
      }
      throw new Refusal(0, "", "the server has ended before there was an answer");
    } catch (error) {
      if (stopping.signal.aborted) {
        return null;
      }
      throw error;
    } finally {
      if (this.stopping === stopping) {
        this.element.hidden = true;
      }
    }
  }

  show(share, what) {
    this.bar.value = share;
    fill(this.told, `${what}, ${percent(share)}`);
  }
}
