// Searching: the index is loaded when somebody begins to type, from a file beside this one, so that it works from disk.
"use strict";

const root = document.body.dataset.root;
const query = document.getElementById("query");
const found = document.getElementById("found");
const MOST = 20;
const AROUND = 60;

let asked = null;

function index() {
  asked ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${root}assets/index.js`;
    script.onload = () => resolve(window.podiumIndex);
    script.onerror = reject;
    document.head.append(script);
  });
  return asked;
}

// How well a section answers the words: all of them must be in it; titles count more than text. 0 is not at all.
function weight(entry, words) {
  const [page, , title, text] = entry.map((part) => part.toLowerCase());
  let sum = 0;
  for (const word of words) {
    const here = (title.includes(word) ? 8 : 0) + (page.includes(word) ? 4 : 0) + (text.includes(word) ? 1 : 0);
    if (!here) return 0;
    sum += here + (title.startsWith(word) ? 4 : 0);
  }
  return sum;
}

function marked(text, words) {
  const place = Math.max(0, ...words.map((word) => text.toLowerCase().indexOf(word)));
  const line = document.createElement("small");
  const from = Math.max(0, place - AROUND);
  const word = words.find((each) => text.toLowerCase().startsWith(each, place));
  const mark = document.createElement("mark");
  mark.textContent = word ? text.slice(place, place + word.length) : "";
  line.append(from ? "…" : "", text.slice(from, place), mark, text.slice(place + mark.textContent.length, place + 2 * AROUND));
  return line;
}

function shown(entry, words) {
  const [page, address, title, text] = entry;
  const link = document.createElement("a");
  link.href = root + address;
  link.append(title === page ? page : `${page}: ${title}`, marked(text, words));
  const item = document.createElement("li");
  item.append(link);
  return item;
}

async function search() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const entries = await index();
  const best = words.length
    ? entries
        .map((entry, place) => ({ entry, place, sum: weight(entry, words) }))
        .filter((each) => each.sum)
        .sort((a, b) => b.sum - a.sum || a.place - b.place)
        .slice(0, MOST)
    : [];
  const items = best.map((each) => shown(each.entry, words));
  if (words.length && !items.length) {
    const none = document.createElement("li");
    none.textContent = "Nothing has all of these words.";
    items.push(none);
  }
  found.replaceChildren(...items);
  found.hidden = !words.length;
}

query.addEventListener("input", search);
query.addEventListener("focus", index);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target === document.body) {
    event.preventDefault();
    query.focus();
  }
  if (event.key === "Escape") {
    query.value = "";
    search();
    query.blur();
  }
  if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !found.hidden) {
    const links = [query, ...found.querySelectorAll("a")];
    const place = links.indexOf(document.activeElement);
    const next = links[place + (event.key === "ArrowDown" ? 1 : -1)];
    if (place >= 0 && next) {
      event.preventDefault();
      next.focus();
    }
  }
});
document.addEventListener("click", (event) => {
  if (!event.target.closest(".search")) found.hidden = true;
});
// On a narrow screen the list of pages begins closed.
if (window.matchMedia("(max-width: 52rem)").matches) document.querySelector("nav.site .menu").open = false;
