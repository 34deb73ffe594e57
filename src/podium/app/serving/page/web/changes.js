// The changes that this page has made, and how each one is undone.

import { Refusal, writing } from "./api.js";

const MOST = 50;
const OF_SERVER = ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

// Removes from an object what the server sets, so that another can be created from it.
export function withoutServerFields(object) {
  const metadata = Object.fromEntries(Object.entries(object.metadata).filter(([name]) => !OF_SERVER.includes(name)));
  return { ...object, metadata };
}

export class Changes {
  // `onchange` is called when there is another change to undo, or none.
  constructor(server) {
    Object.assign(this, { server, done: [], group: null, onchange: () => {} });
  }

  // The change that `undo` would undo, in words; "" if there is none.
  get last() {
    return this.done.at(-1)?.what ?? "";
  }

  add(what, undo) {
    if (this.group) {
      this.group.push(undo);
      return;
    }
    this.done.push({ what, undo });
    this.done.splice(0, this.done.length - MOST);
    this.onchange();
  }

  // Counts all changes that `act` makes as one; `naming` returns its words.
  async together(naming, act) {
    const group = (this.group = []);
    try {
      return await act();
    } finally {
      this.group = null;
      if (group.length) {
        this.add(naming(), async () => {
          // Later changes may depend on earlier ones.
          for (const undo of group.reverse()) {
            await undo();
          }
        });
      }
    }
  }

  // Notes that `object` was created below `path`.
  created(what, path, object) {
    const { name, uid } = object.metadata;
    const body = JSON.stringify({ apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid } });
    this.add(what, async () => {
      try {
        await this.server.ask("DELETE", `${path}/${encodeURIComponent(name)}`, { body });
      } catch (error) {
        // It may be gone with another object.
        if (!(error instanceof Refusal) || error.code !== 404) {
          throw error;
        }
      }
    });
  }

  // Changes the object at `path` with `ask`, and returns the reply.
  async changing(what, path, ask) {
    const before = await this.server.json("GET", path);
    const reply = await ask();
    const { generation } = (await this.server.json("GET", path)).metadata;
    this.add(what, async () => {
      const { uid, resourceVersion, generation: now } = (await this.server.json("GET", path)).metadata;
      if (uid !== before.metadata.uid || now !== generation) {
        throw new Refusal(409, "", "it has been changed again since, and is left as it is");
      }
      const body = withoutServerFields(before);
      Object.assign(body.metadata, { uid, resourceVersion });
      await this.server.ask("PUT", `${path}?${writing()}`, { body: JSON.stringify(body) });
    });
    return reply;
  }

  // Deletes the object at `path` with `ask`, and returns the reply.
  async deleting(what, path, ask) {
    const before = await this.server.json("GET", path);
    const reply = await ask();
    const body = JSON.stringify(withoutServerFields(before)), above = path.slice(0, path.lastIndexOf("/"));
    this.add(what, () => this.server.ask("POST", `${above}?${writing()}`, { body }));
    return reply;
  }

  // Undoes the last change, and returns what it was. After an error the change is still the last one.
  async undo() {
    const { what, undo } = this.done.at(-1);
    await undo();
    this.done.pop();
    this.onchange();
    return what;
  }
}
