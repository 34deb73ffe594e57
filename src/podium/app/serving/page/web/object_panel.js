// One object: its YAML, and what can be done with it; templates of new objects.

import { button, element, fill } from "./drawing/dom.js";
import { Refusal, YAML, kindOf, pathOf, writing } from "./api.js";
import { Described } from "./described.js";
import { Editor, withoutIdentity, withoutManagedFields } from "./editor.js";
import { Messages } from "./form.js";
import { documentsOf } from "./state.js";

const BY_KIND = {
  Pod: `apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: default
spec:
  # priorityClassName: high
  containers:
  - name: main
    image: nginx
    resources:
      requests: {cpu: 500m, memory: 256Mi}
`,
  Deployment: `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: default
spec:
  replicas: 3
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: main
        image: nginx
        resources:
          requests: {cpu: 500m, memory: 256Mi}
`,
  PriorityClass: `apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: high
value: 1000
preemptionPolicy: PreemptLowerPriority
`,
  PodDisruptionBudget: `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: web
  namespace: default
spec:
  minAvailable: 2
  selector:
    matchLabels: {app: web}
`,
  Node: `apiVersion: v1
kind: Node
metadata:
  name: node-new
  labels:
    kubernetes.io/hostname: node-new
status:
  allocatable: {cpu: "4", memory: 16Gi, pods: "110"}
  capacity: {cpu: "4", memory: 16Gi, pods: "110"}
  conditions:
  - {type: Ready, status: "True"}
`,
  Job: `apiVersion: batch/v1
kind: Job
metadata:
  name: work
  namespace: default
spec:
  parallelism: 2
  completions: 4
  template:
    metadata:
      annotations: {podium.dev/duration: 30s}
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox
        resources:
          requests: {cpu: 250m}
`,
};

// The text for an object of a kind.
export function templateOf({ kind, group, version, namespaced }) {
  if (BY_KIND[kind]) {
    return BY_KIND[kind];
  }
  const apiVersion = group ? `${group}/${version}` : version;
  return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: \n${namespaced ? "  namespace: default\n" : ""}`;
}

const MERGE = "application/merge-patch+json";
const POWER = "podium.dev/power";
const SURE_FOR = 4000;

export class ObjectPanel {
  // `page` has the server, the kinds and whether objects can be changed; `onclose` is called when it is closed.
  constructor(page, onclose) {
    Object.assign(this, { page, onclose });
    this.title = element("h2", {});
    this.state = element("span", { className: "state" });
    this.messages = new Messages();
    this.editor = new Editor({
      label: "The object in YAML",
      isReadOnly: page.isReadOnly,
      onsave: () => this.save(),
      onchange: () => this.tellState(),
    });
    this.tools = element("div", { className: "tools" });
    this.described = new Described(page);
    this.element = element("section", { className: "object-panel", "aria-label": "Object" },
      element("header", { className: "panel-head" }, this.title, this.state,
        button("Close", "Close this object", () => this.close())),
      this.tools, this.messages.element, this.editor.element, this.described.element);
    this.element.hidden = true;
    this.ref = null;
  }

  get isChanged() {
    return this.editor.text !== this.saved;
  }

  // Shows a new object of a kind.
  make(kind) {
    this.ref = null;
    this.described.show("", "");
    this.title.textContent = `New ${kind.label}`;
    this.put(templateOf(kind));
    this.messages.clear();
    this.showTools(kind);
    this.element.hidden = false;
    this.editor.area.focus();
  }

  // Shows the text of files, from which objects can be created.
  makeFrom(kind, title, text) {
    this.make(kind);
    this.title.textContent = title;
    this.put(text);
  }

  // Shows an object as it is.
  async open(kind, namespace, name) {
    this.messages.clear();
    this.show({ kind, namespace, name });
    await this.load();
  }

  show(ref) {
    const { kind, namespace, name } = ref;
    this.ref = ref;
    this.title.textContent = `${kind.kind} ${namespace ? `${namespace}/` : ""}${name}`;
    this.element.hidden = false;
    this.showTools(kind);
    this.described.show(kind.group === "" && ["Pod", "Node"].includes(kind.kind) ? kind.kind : "", namespace ? `${namespace}/${name}` : name);
  }

  async load() {
    const { ref } = this;
    try {
      const { text } = await this.page.server.ask("GET", this.path, { accept: YAML });
      if (this.ref === ref) {
        this.put(withoutManagedFields(text));
      }
    } catch (error) {
      if (this.ref === ref) {
        this.messages.bad(error);
      }
    }
  }

  get path() {
    return pathOf(this.ref.kind, this.ref.namespace, this.ref.name);
  }

  put(text) {
    this.saved = text;
    if (this.announced === this.title.textContent) {
      this.editor.renew(text);
    } else {
      this.announced = this.title.textContent;
      this.editor.text = text;
    }
    this.version = /^ {2}resourceVersion: ["']?(\w+)/m.exec(text)?.[1] ?? "";
    this.tellState();
  }

  tellState() {
    this.state.textContent = this.page.isReadOnly ? "to look at" : this.isChanged ? "changed, not saved" : "";
  }

  // The object is another on the server: shown at once where nothing was written here, and reported if something was.
  changed(version) {
    if (!this.ref || version === this.version) {
      return;
    }
    if (this.isChanged) {
      this.messages.note("It has changed on the server meanwhile. ",
        button("Load the newest", "What is written here is lost", () => this.reload()));
    } else {
      this.load();
    }
  }

  reload() {
    this.messages.clear();
    this.load();
  }

  // The object is no more.
  gone() {
    const { kind } = this.ref;
    this.messages.note("It is gone. What is left here is its text, from which it can be made anew.");
    this.ref = null;
    this.put(withoutIdentity(this.editor.text));
    this.showTools(kind);
  }

  close() {
    this.ref = null;
    this.element.hidden = true;
    this.onclose();
  }

  showTools(kind) {
    if (this.page.isReadOnly) {
      fill(this.tools, ...this.links(kind));
      return;
    }
    const isNew = this.ref === null;
    fill(this.tools,
      button(isNew ? "Create" : "Save", "Ctrl+Enter", () => this.save()),
      button("Check", "Ask the server whether it would take it, and change nothing", () => this.save(true)),
      isNew ? null : this.sureButton("Delete", () => this.remove()),
      isNew ? null : button("Reload", "Load it as it is on the server", () => this.reload()),
      ...(isNew ? [] : this.actionButtons(kind)), ...this.links(kind));
  }

  // A button that is pressed twice.
  sureButton(text, act) {
    const made = button(text, "", () => {
      if (made.dataset.sure) {
        delete made.dataset.sure;
        made.textContent = text;
        act();
        return;
      }
      made.dataset.sure = "true";
      made.textContent = `${text}: sure?`;
      setTimeout(() => {
        delete made.dataset.sure;
        made.textContent = text;
      }, SURE_FOR);
    });
    made.classList.add("danger");
    return made;
  }

  // What is often done with objects of a kind.
  actionButtons(kind) {
    if (kind.kind === "Node" && !kind.group) {
      return [
        button("Cordon", "No more pods go there", () => this.patch({ spec: { unschedulable: true } })),
        button("Uncordon", "Pods may go there again", () => this.patch({ spec: { unschedulable: null } })),
        button("Stop machine", "Its machine stops, without a word", () => this.annotate({ [POWER]: "off" })),
        button("Start machine", "Its machine runs again", () => this.annotate({ [POWER]: null })),
      ];
    }
    if (kind.kind === "Pod" && !kind.group) {
      return [this.sureButton("Evict", () => this.evict())];
    }
    if (kind.subresources.includes("scale")) {
      const number = element("input", { type: "number", min: "0", className: "replicas", "aria-label": "Replicas" });
      const scale = () => (number.value === "" ? number.focus() : this.scale(Number(number.value)));
      return [element("span", { className: "group" }, number, button("Scale", "Let it have so many pods", scale))];
    }
    return [];
  }

  links(kind) {
    const { ref, page } = this;
    const explained = ["Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"];
    if (!ref || !explained.includes(kind.kind)) {
      return [];
    }
    const target = kind.kind === "Pod" ? `${ref.namespace}/${ref.name}` : `${kind.kind.toLowerCase()}/${ref.namespace}/${ref.name}`;
    return [button("Explain", "Why it is there, or not", () => page.explain(target))];
  }

  // Asks the server for what is written, for all objects of the text; with `isDry` nothing is kept.
  async save(isDry = false) {
    if (this.page.isReadOnly) {
      return;
    }
    this.messages.clear();
    try {
      const documents = documentsOf(await this.page.server.json("POST", "/ui/read", { body: this.editor.text, type: "text/plain" }));
      if (!documents.length) {
        throw new Refusal(0, "", "There is no object in the text.");
      }
      const done = [], warnings = [];
      await this.page.changes.together(() => done.join(", "), async () => {
        for (const [place, document] of documents.entries()) {
          try {
            const written = await this.write(document, isDry);
            done.push(written.done);
            warnings.push(...written.warnings);
          } catch (error) {
            error.message = documents.length > 1 ? `document ${place + 1}: ${error.message}` : error.message;
            throw error;
          }
        }
      });
      this.messages.good(done.join(", "), warnings);
    } catch (error) {
      this.refused(error);
    }
  }

  // Creates one object, or puts it in the place of the one that is shown.
  async write(document, isDry) {
    const { server, changes } = this.page, kinds = await this.page.kinds();
    const kind = kindOf(kinds, document.apiVersion, document.kind);
    if (!kind) {
      throw new Refusal(404, "", `the server has no kind ${document.kind} in ${document.apiVersion || "no apiVersion"}`);
    }
    const query = writing({ fieldValidation: "Strict", ...(isDry ? { dryRun: "All" } : {}) });
    const namespace = kind.namespaced ? document.namespace || "default" : "";
    const { ref } = this;
    const isThis = ref && ref.kind.kind === kind.kind && ref.name === document.name && ref.namespace === namespace;
    const [method, path] = isThis ? ["PUT", this.path] : ["POST", pathOf(kind, namespace)];
    const ask = () => server.ask(method, `${path}?${query}`, { body: document.json });
    const { text, warnings } = await (isThis && !isDry ? changes.changing("", path, ask) : ask());
    const object = JSON.parse(text), made = object.metadata;
    const what = `${kind.kind} ${made.namespace ? `${made.namespace}/` : ""}${made.name}`;
    if (!isDry && !isThis) {
      changes.created("", path, object);
    }
    if (!isDry) {
      await this.written(kind, made);
    }
    const done = isThis ? "saved" : "created";
    return { done: isDry ? `${what} would be ${done}` : `${what} is ${done}`, warnings };
  }

  // What was written is shown as the server has it; of several objects, the first.
  async written(kind, { namespace = "", name }) {
    if (this.ref === null) {
      this.show({ kind, namespace, name });
      this.page.openObject(kind, namespace, name);
    }
    await this.load();
  }

  refused(error) {
    this.messages.bad(error);
    if (error instanceof Refusal && error.code === 409 && error.reason === "Conflict") {
      this.messages.note("It has changed on the server since it was loaded; nothing was saved. ",
        button("Load the newest", "What is written here is lost", () => this.reload()));
    }
  }

  // Asks for something about the object; the result is shown unless it is gone by then.
  async act(what, ask) {
    const { ref } = this;
    this.messages.clear();
    try {
      const { warnings } = await ask();
      if (this.ref === ref) {
        this.messages.good(what, warnings);
      }
    } catch (error) {
      this.messages.bad(error);
    }
  }

  // What is done to the object, for the list of changes.
  named(what) {
    return `${this.title.textContent} ${what}`;
  }

  remove() {
    const { path, page } = this;
    const ask = () => page.changes.deleting(this.named("is deleted"), path, () => page.server.ask("DELETE", path));
    return this.act("It is being deleted.", ask);
  }

  patch(body, said = "Done.", subresource = "") {
    const { path, page } = this;
    const request = { body: JSON.stringify(body), type: MERGE };
    const ask = () => page.server.ask("PATCH", `${path}${subresource}?${writing()}`, request);
    return this.act(said, () => page.changes.changing(this.named("is changed"), path, ask));
  }

  annotate(annotations) {
    return this.patch({ metadata: { annotations } });
  }

  scale(replicas) {
    return this.patch({ spec: { replicas } }, `It is to have ${replicas} pods.`, "/scale");
  }

  evict() {
    const { path, page } = this, { name, namespace } = this.ref;
    const body = JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } });
    const ask = () => page.server.ask("POST", `${path}/eviction`, { body });
    return this.act("It is being evicted.", () => page.changes.deleting(this.named("is evicted"), path, ask));
  }
}
