// The state of the cluster as a file: export, and import into a running cluster.

import { Refusal, kindOf, pathOf, writing } from "./api.js";
import { withoutServerFields } from "./changes.js";

const PAGE_SIZE = 500;
const AT_ONCE = 6;
const MOST_ERRORS = 5;
// What the cluster makes itself, and secrets.
const LEFT_OUT = ["Endpoints", "EndpointSlice", "Event", "Lease", "Secret"];
// Import creates these first, then all else, then pods, and OWNERS after them, which adopt their pods.
const FIRST = ["CustomResourceDefinition", "Namespace", "PriorityClass"];
const OWNERS = ["ReplicaSet", "ReplicationController", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"];
const LAST = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding"];

// Lets a file be chosen; returns a promise of the files, which never resolves if the user cancels.
export function chooseFiles(accept) {
  return new Promise((resolve) => {
    const input = Object.assign(document.createElement("input"), { type: "file", multiple: true, accept });
    input.addEventListener("change", () => resolve([...input.files]));
    input.click();
  });
}

// The objects of all kinds as the text of a List, without Secrets and what the cluster makes itself. `report` receives
// the number of objects so far.
export async function exported(page, report) {
  const items = [];
  for (const kind of await page.kinds()) {
    if (LEFT_OUT.includes(kind.kind) || !kind.verbs.includes("create")) {
      continue;
    }
    for await (const list of pagesOf(page.server, kind)) {
      const typed = { apiVersion: list.apiVersion, kind: kind.kind };
      for (const item of list.items) {
        delete item.metadata.managedFields;
        items.push(JSON.stringify({ ...typed, ...item }));
      }
      report(items.length);
    }
  }
  return { number: items.length, text: `{"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [\n${items.join(",\n")}\n]}\n` };
}

async function* pagesOf(server, kind) {
  const query = new URLSearchParams({ limit: PAGE_SIZE });
  do {
    const list = await server.json("GET", `${pathOf(kind)}?${query}`);
    yield list;
    query.set("continue", list.metadata.continue ?? "");
  } while (query.get("continue"));
}

// Offers a text as a file to keep.
export function offer(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// The objects in the text of a file, in JSON or YAML, with those of Lists. Raises Refusal.
export async function objectsIn(server, text) {
  let found;
  try {
    found = [JSON.parse(text)];
  } catch {
    const read = await server.json("POST", "/ui/read", { body: text, type: "text/plain" });
    found = read.documents.map((document) => JSON.parse(document.json));
  }
  return found.flatMap((object) => (Array.isArray(object?.items) ? object.items : [object]));
}

// The documents of a text that `/ui/read` has read, with the objects of a List in its place.
export function documentsOf(read) {
  return read.documents.flatMap((document) => {
    const { items } = document.kind.endsWith("List") ? JSON.parse(document.json) : {};
    return Array.isArray(items) ? items.map(documentOf) : [document];
  });
}

function documentOf(object) {
  const { apiVersion = "", kind = "", metadata: { name = "", namespace = "" } = {} } = object;
  return { apiVersion, kind, name, namespace, json: JSON.stringify(object) };
}

// Creates the objects that are missing. Those that are there stay as they are.
export async function importObjects(page, objects, report) {
  const kinds = await page.kinds(), result = { created: 0, there: 0, leftOut: 0, errors: [] };
  const waiting = new Map(), there = new Map();
  for (const object of objects) {
    const kind = object?.metadata && kindOf(kinds, object.apiVersion ?? "", object.kind ?? "");
    const body = kind && importable(object, kind);
    if (!body) {
      result.leftOut += 1;
      continue;
    }
    const rank = rankOf(object), id = `${kind.group}/${kind.kind}`;
    there.has(id) || there.set(id, await namesOf(page.server, kind));
    if (there.get(id).has(nameOf(body.metadata))) {
      result.there += 1;
    } else {
      waiting.has(rank) || waiting.set(rank, []);
      waiting.get(rank).push({ kind, body });
    }
  }
  for (const rank of [...waiting.keys()].sort((left, right) => left - right)) {
    const rest = waiting.get(rank).reverse();
    const work = async () => {
      for (let each = rest.pop(); each; each = rest.pop()) {
        await create(page, each, result);
        report(result.created + result.there);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }
  return result;
}

async function namesOf(server, kind) {
  const found = new Set();
  for await (const list of pagesOf(server, kind)) {
    list.items.forEach((item) => found.add(nameOf(item.metadata)));
  }
  return found;
}

function nameOf({ namespace = "", name }) {
  return namespace ? `${namespace}/${name}` : name;
}

async function create({ server, changes }, { kind, body }, result) {
  const path = pathOf(kind, body.metadata.namespace), name = `${kind.kind} ${nameOf(body.metadata)}`;
  try {
    changes.created(name, path, await server.json("POST", `${path}?${writing()}`, { body: JSON.stringify(body) }));
    result.created += 1;
  } catch (error) {
    if (!(error instanceof Refusal)) {
      throw error;
    }
    // A controller may have created it meanwhile.
    if (error.reason === "AlreadyExists") {
      result.there += 1;
    } else {
      result.errors.push(`${name}: ${error.message}`);
    }
  }
}

// The place of an object in the order of creation.
function rankOf({ kind, spec }) {
  if (FIRST.includes(kind)) {
    return FIRST.indexOf(kind);
  }
  if (kind === "Pod") {
    // Pods that wait must not take the room of those that are bound.
    return FIRST.length + (spec?.nodeName ? 1 : 2);
  }
  const owner = OWNERS.indexOf(kind), end = FIRST.length + 3;
  return owner >= 0 ? end + owner : LAST.includes(kind) ? end + OWNERS.length : FIRST.length;
}

// An object as it can be created: without owners, whose uids are others now, so that their controllers adopt it. Null
// for what has ended, which would run again, and for pods of Jobs, which their Jobs create.
function importable(object, { namespaced }) {
  const { kind, metadata, spec = {}, status = {} } = object;
  const isOver = ["Succeeded", "Failed"].includes(status.phase) && kind === "Pod"
    || kind === "Job" && (status.conditions ?? []).some(({ type, status: is }) => ["Complete", "Failed"].includes(type) && is === "True");
  const isOfJob = kind === "Pod" && (metadata.ownerReferences ?? []).some((owner) => owner.kind === "Job");
  if (LEFT_OUT.includes(kind) || isOver || isOfJob || metadata.deletionTimestamp) {
    return null;
  }
  const made = withoutServerFields(object);
  delete made.metadata.ownerReferences;
  if (namespaced) {
    made.metadata.namespace ||= "default";
  }
  if (kind === "Job" && !spec.manualSelector) {
    const { selector, template, ...rest } = spec;
    const labels = Object.entries(template.metadata?.labels ?? {}).filter(([name]) => !/(^|\/)(controller-uid|job-name)$/.test(name));
    made.spec = { ...rest, template: { ...template, metadata: { ...template.metadata, labels: Object.fromEntries(labels) } } };
  }
  return made;
}

// What an import has done, in words, and its errors.
export function resultText({ created, there, leftOut, errors }) {
  const parts = [`${created} created`, there ? `${there} there already` : "", leftOut ? `${leftOut} left out` : "", errors.length ? `${errors.length} refused` : ""];
  return [parts.filter((part) => part).join(", "), errors.slice(0, MOST_ERRORS)];
}
