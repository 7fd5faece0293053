// The map: documents as points, those about the same subject near each other; the query and its hits are lit.
import { request } from "./api.js";
import { element, t } from "./dom.js";
import { listen } from "./events.js";
import { say } from "./fragments.js";
import { MapAreas } from "./map_areas.js";
import { MapCanvas } from "./map_canvas.js";
import { listenToGestures } from "./map_gestures.js";
import { groupName, showLegend } from "./map_legend.js";
import { at, Points, stretchFor } from "./map_points.js";

/** @typedef {import("./map_points.js").Place} Place */

const DELAY = 180; // milliseconds after a key
const MAX_HITS = 50;
const MAX_LISTED = 50;

const form = /** @type {HTMLFormElement} */ (document.getElementById("map-form"));
const input = /** @type {HTMLInputElement} */ (document.getElementById("query"));
const stage = /** @type {HTMLElement} */ (document.getElementById("stage"));
const tip = /** @type {HTMLElement} */ (document.getElementById("tip"));
const message = /** @type {HTMLElement} */ (document.getElementById("map-message"));
const chosenBar = /** @type {HTMLElement} */ (document.getElementById("chosen"));
const spoken = /** @type {HTMLElement} */ (document.getElementById("map-status"));
const legend = /** @type {HTMLElement} */ (document.getElementById("legend"));
const subjects = /** @type {HTMLElement} */ (document.getElementById("areas"));
const colorSelect = /** @type {HTMLSelectElement} */ (form.elements.namedItem("color"));
const lassoButton = /** @type {HTMLElement} */ (document.getElementById("lasso"));

document.documentElement.classList.add("scripts");
const map = new MapCanvas(/** @type {HTMLCanvasElement} */ (document.getElementById("canvas")));
const tools = /** @type {HTMLElement} */ (stage.querySelector(".tools"));
const keepButtonsFree = () => {
  const { offsetLeft, offsetTop, offsetWidth, offsetHeight } = tools;
  map.reserved = [offsetLeft, offsetTop, offsetLeft + offsetWidth, offsetTop + offsetHeight];
};
new ResizeObserver(keepButtonsFree).observe(stage);
/** @type {Map<string, number>} the number of each document by its tool and path */
let numbers = new Map();
/** @type {import("./map_legend.js").Group[]} */
let groups = [];
let typing = 0;
let listing = 0;
let loads = 0; // maps so far, so that a reply that is not the newest is dropped
let asked = 0; // searches so far, so that an answer that is not the newest is dropped
let isFound = false; // whether the hits are those of the query
let generation = 0; // of the documents that are shown
let color = colorSelect.dataset.chosen ?? ""; // empty: the server knows what tells documents apart

async function load() {
  const parameters = new URLSearchParams(color ? { color } : {});
  const number = ++loads;
  stage.setAttribute("aria-busy", "true");
  try {
    const reply = await request("GET", `/map?${parameters}`);
    if (number !== loads) return;
    ({ generation, groups } = reply);
    colorSelect.value = reply.color;
    map.faded.clear();
    map.chosen.clear();
    showLegend(legend, groups, reply.color, (faded) => {
      map.faded = faded;
      map.draw();
    });
    readColors();
    const points = new Points(reply.documents, stretchFor(reply.documents, stage));
    numbers = new Map(reply.documents.map((/** @type {Place} */ place, /** @type {number} */ number) => [key(place), number]));
    look(-1, false);
    map.areas = new MapAreas(reply.areas, document.documentElement.lang, points.stretch);
    map.show(points);
    const named = new URLSearchParams(location.search).get("area");
    const area = named && map.areas.all.find(({ names }) => names.includes(named));
    if (area) map.zoomTo(area);
    message.textContent = describe(points.length, reply.left_out);
    message.hidden = points.length > 0 && !reply.left_out;
    stage.classList.toggle("empty", points.length === 0);
    showChosen(false);
    if (input.value.trim()) await search();
    else list();
  } catch (error) {
    if (number !== loads) return;
    message.hidden = false;
    message.textContent = /** @type {Error} */ (error).message;
  } finally {
    if (number === loads) stage.removeAttribute("aria-busy");
  }
}

/**
 * @param {number} count
 * @param {number} leftOut
 */
function describe(count, leftOut) {
  if (count === 0) return t(leftOut ? "map.no_vectors" : "map.empty");
  return leftOut ? t("map.left_out", { count: leftOut.toLocaleString() }) : "";
}

/** @param {{tool: string, path: string}} place */
function key({ tool, path }) {
  return `${tool}\0${path}`;
}

function readColors() {
  const style = getComputedStyle(stage);
  map.ink = style.color;
  map.paper = style.backgroundColor;
  map.font = style.fontFamily;
  map.accent = getComputedStyle(tip).borderLeftColor;
  map.colors = [...legend.querySelectorAll(".swatch")].map((swatch) => getComputedStyle(swatch).backgroundColor);
}

/** @param {Place} place */
function address({ tool, path }) {
  const encoded = path.includes("://") ? encodeURIComponent(path) : path.split("/").map(encodeURIComponent).join("/");
  const query = input.value.trim();
  return `/documents/${encodeURIComponent(tool)}/${encoded}${query ? `?q=${encodeURIComponent(query)}` : ""}`;
}

/** @param {Place} place */
function name({ title, path }) {
  return (title || path.split("/").pop() || path).slice(0, 160);
}

/** @param {Place} place */
function facts({ tool, date, group }) {
  const named = groups[group];
  const parts = [tool, date.slice(0, 10)];
  if (named && colorSelect.value === "tag" && named.kind === "value") parts.push(`#${groupName(named, "tag")}`);
  return parts.filter(Boolean).join(" · ");
}

/**
 * Show what is at a point.
 * @param {number} index
 * @param {boolean} isSaid also to screen readers
 */
function look(index, isSaid) {
  if (index === map.current && !isSaid) return;
  map.current = index;
  map.draw();
  const place = index < 0 ? null : map.points?.places[index];
  tip.hidden = !place;
  map.canvas.classList.toggle("over", Boolean(place));
  if (!place || !map.points) return;
  const path = element("span", { class: "path" }, element("bdi", {}, place.path));
  tip.replaceChildren(element("strong", {}, element("bdi", {}, name(place))), element("bdi", {}, facts(place)), path);
  const [x, y] = map.toScreen(at(map.points.x, index), at(map.points.y, index));
  const left = Math.min(Math.max(x - tip.offsetWidth / 2, 8), stage.clientWidth - tip.offsetWidth - 8);
  const isBelow = y < tip.offsetHeight + 24;
  tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(isBelow ? y + 16 : y - tip.offsetHeight - 16)}px)`;
  if (isSaid) spoken.replaceChildren(element("bdi", {}, `${name(place)}, ${facts(place)}`));
}

async function search() {
  const number = ++asked;
  const query = input.value.trim();
  history.replaceState(null, "", formAddress());
  if (!query) {
    [map.hits, map.query, isFound] = [[], null, false];
    map.draw();
    list();
    return;
  }
  const parameters = new URLSearchParams({ q: query, per_document: "1", top_k: String(MAX_HITS), extract: "snippet" });
  const place = new URLSearchParams({ q: query });
  try {
    const [answer, position] = await Promise.all([
      request("GET", `/search?${parameters}`),
      request("GET", `/map/position?${place}`).catch(() => ({ x: null, y: null })), // a model may be away
    ]);
    if (number !== asked) return;
    const found = answer.results.map((/** @type {any} */ hit) => numbers.get(key({ tool: hit.tool, path: hit.file_path })));
    map.hits = [...new Set(/** @type {number[]} */ (found.filter((/** @type {unknown} */ index) => index !== undefined)))];
    map.query = position.x === null ? null : [(map.points?.stretch ?? 1) * position.x, -position.y];
    isFound = true;
    spoken.textContent = t("map.found", { count: map.hits.length });
  } catch (error) {
    if (number === asked) say(/** @type {Error} */ (error).message);
  }
  map.draw();
  list();
}

function formAddress() {
  const parameters = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (typeof value === "string" && value.trim() && name !== "color") parameters.append(name, value);
  }
  if (color) parameters.set("color", color);
  return parameters.size ? `/map?${parameters}` : "/map";
}

/** Show the documents as a list: those that were chosen, else the hits, else those in view. */
function list() {
  clearTimeout(listing);
  listing = window.setTimeout(() => {
    if (!map.points) return;
    const [heading, shown] = map.chosen.size
      ? ["map.list_chosen", [...map.chosen]]
      : isFound ? ["map.list_hits", map.hits] : ["map.list_view", map.inView()];
    const title = document.getElementById("list-title");
    if (title) title.textContent = t(/** @type {string} */ (heading), { count: shown.length.toLocaleString() });
    const places = shown.slice(0, MAX_LISTED).map((index) => /** @type {Place} */ (map.points?.places[/** @type {number} */ (index)]));
    document.getElementById("map-list")?.replaceChildren(
      ...places.map((place) =>
        element("li", {}, element("a", { href: address(place) }, element("bdi", {}, name(place))), " ", element("bdi", { class: "quiet" }, facts(place))),
      ),
    );
    document.getElementById("map-more")?.remove();
    showAreas();
    showChosen(false);
  }, 120);
}

/** Show the names that are on the map as a list too: each leads to what lies there. */
function showAreas() {
  const hadFocus = subjects.contains(document.activeElement);
  const shown = map.areas.inView();
  subjects.hidden = shown.length === 0;
  subjects.querySelector("ul")?.replaceChildren(
    ...shown.map((area) => {
      const link = element("a", { href: `/map?${new URLSearchParams({ area: area.name })}` }, element("bdi", {}, area.name));
      link.addEventListener("click", (event) => {
        event.preventDefault();
        enter(area);
      });
      return element("li", {}, link, " ", element("span", { class: "quiet" }, area.count.toLocaleString()));
    }),
  );
  if (hadFocus) subjects.querySelector("a")?.focus();
}

/** @param {import("./map_areas.js").Area} area */
function enter(area) {
  look(-1, false);
  map.zoomTo(area);
  spoken.textContent = t("map.entered", { name: area.name, count: area.count.toLocaleString() });
  list();
}

/** @param {Iterable<number>} indexes */
function choose(indexes) {
  map.chosen = new Set(indexes);
  showChosen(true);
  map.draw();
  list();
}

/**
 * Offer to search within what was chosen, or else within the part of the map that is in view.
 * @param {boolean} isSaid also to screen readers
 */
function showChosen(isSaid) {
  const all = map.points?.length ?? 0;
  const [text, count] = map.chosen.size ? ["map.chosen", map.chosen.size] : ["map.list_view", map.inView().length];
  chosenBar.hidden = count === 0 || count === all;
  const label = chosenBar.querySelector("span");
  if (label) label.textContent = t(text, { count: count.toLocaleString() });
  const clear = document.getElementById("clear");
  if (clear) clear.hidden = map.chosen.size === 0;
  if (isSaid && map.chosen.size) spoken.textContent = t(text, { count });
}

async function searchWithin() {
  const places = [...(map.chosen.size ? map.chosen : map.inView())].map((index) => /** @type {Place} */ (map.points?.places[index]));
  const documents = Object.fromEntries(
    [...new Set(places.map(({ tool }) => tool))].map((tool) => [tool, places.filter((place) => place.tool === tool).map(({ path }) => path)]),
  );
  try {
    const { id } = await request("POST", "/selections", { documents });
    const parameters = new URLSearchParams({ selection: id });
    if (input.value.trim()) parameters.set("q", input.value.trim());
    location.assign(`/?${parameters}`);
  } catch (error) {
    say(/** @type {Error} */ (error).message);
  }
}

listenToGestures(map, {
  isLassoing: () => lassoButton.getAttribute("aria-pressed") === "true",
  look,
  open: (index) => location.assign(address(/** @type {Place} */ (map.points?.places[index]))),
  choose,
  enter,
  toggle: (index) => choose(map.chosen.has(index) ? [...map.chosen].filter((other) => other !== index) : [...map.chosen, index]),
  clear: () => {
    look(-1, false);
    choose([]);
  },
});
/** @type {Record<string, () => void>} */
const buttons = {
  "zoom-in": () => map.zoomBy(1.5),
  "zoom-out": () => map.zoomBy(1 / 1.5),
  fit: () => map.fit(),
  lasso: () => {
    const isOn = lassoButton.getAttribute("aria-pressed") !== "true";
    lassoButton.setAttribute("aria-pressed", String(isOn));
    stage.classList.toggle("lassoing", isOn);
  },
  "choose-view": () => choose(map.inView()),
  within: () => void searchWithin(),
  clear: () => choose([]),
};
document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("button") : null;
  buttons[button?.id ?? ""]?.();
});
map.moved = list;
input.addEventListener("input", (event) => {
  clearTimeout(typing);
  if (!(event instanceof InputEvent && event.isComposing)) typing = window.setTimeout(search, DELAY);
});
input.addEventListener("compositionend", () => (typing = window.setTimeout(search, DELAY)));
form.addEventListener("change", (event) => {
  if (event.target !== colorSelect) return;
  color = colorSelect.value;
  history.replaceState(null, "", formAddress());
  void load();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  void search();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColors();
  map.draw();
});
listen("generation", (data) => {
  if (generation && generation !== data.generation) void load();
});
void load();
