// Move and zoom a map, choose points with a line, and go from point to point: by mouse, touch and keys.

import { at } from "./map_points.js";

/** @typedef {import("./map_canvas.js").MapCanvas} MapCanvas */
/** @typedef {import("./map_points.js").Point} Point */
/**
 * @typedef {object} Actions
 * @property {() => boolean} isLassoing whether dragging chooses points
 * @property {(index: number, isSaid: boolean) => void} look shows what is at a point; -1 for none
 * @property {(index: number) => void} open
 * @property {(indexes: number[]) => void} choose
 * @property {(index: number) => void} toggle chooses a point, or no longer
 * @property {(area: import("./map_areas.js").Area) => void} enter shows what lies in an area
 * @property {() => void} clear
 */

const CLICK_PIXELS = 5;
const TOUCH_PIXELS = 22;
const MOUSE_PIXELS = 10;
const PAN_PIXELS = 60;
/** @type {Record<string, Point>} */
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * @param {MapCanvas} map
 * @param {Actions} actions
 */
export function listenToGestures(map, actions) {
  const { canvas } = map;
  listenToPointers(map, actions);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 * event.deltaY : event.deltaY;
    map.zoomBy(Math.exp(-0.0016 * pixels), event.offsetX, event.offsetY);
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (press(event, map, actions)) event.preventDefault();
  });
  canvas.addEventListener("blur", () => actions.look(-1, false));
}

/**
 * @param {MapCanvas} map
 * @param {Actions} actions
 */
function listenToPointers(map, actions) {
  const { canvas } = map;
  /** @type {Map<number, Point>} */
  const fingers = new Map();
  let travelled = 0;
  let isLassoing = false;

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
    isLassoing = fingers.size === 1 && (actions.isLassoing() || event.shiftKey);
    map.lasso = isLassoing ? [[event.offsetX, event.offsetY]] : [];
    if (fingers.size === 1) travelled = 0;
  });

  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) {
      const area = map.areas.at(event.offsetX, event.offsetY);
      actions.look(area ? -1 : pointAt(map, event), false);
      canvas.classList.toggle("over", Boolean(area) || map.current >= 0);
      return;
    }
    /** @type {Point} */
    const here = [event.offsetX, event.offsetY];
    const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
    fingers.set(event.pointerId, here);
    travelled += distance(before, here);
    if (isLassoing && !other) {
      map.lasso.push(here);
      map.draw();
    } else if (other) {
      isLassoing = false;
      map.lasso = [];
      map.zoomBy(distance(other, here) / (distance(other, before) || 1), (other[0] + here[0]) / 2, (other[1] + here[1]) / 2);
      map.moveBy((here[0] - before[0]) / 2, (here[1] - before[1]) / 2);
    } else if (travelled > CLICK_PIXELS) {
      actions.look(-1, false);
      map.moveBy(here[0] - before[0], here[1] - before[1]);
    }
  });

  canvas.addEventListener("pointerup", (event) => {
    const isLast = fingers.delete(event.pointerId) && fingers.size === 0;
    const line = map.lasso;
    map.lasso = [];
    if (!isLast) return;
    const area = map.areas.at(event.offsetX, event.offsetY);
    if (travelled <= CLICK_PIXELS && area && !isLassoing) actions.enter(area);
    else if (travelled <= CLICK_PIXELS) click(pointAt(map, event), event.pointerType);
    else if (isLassoing && map.points) actions.choose(map.points.enclosed(line.map(([x, y]) => map.toMap(x, y))));
    map.draw();
  });

  /**
   * @param {number} index
   * @param {string} device
   */
  function click(index, device) {
    if (index < 0) actions.look(-1, false);
    else if (isLassoing) actions.toggle(index);
    else if (device === "touch" && index !== map.current) actions.look(index, true); // a second tap opens it
    else actions.open(index);
  }

  canvas.addEventListener("pointercancel", (event) => {
    fingers.delete(event.pointerId);
    map.lasso = [];
    map.draw();
  });
  canvas.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse" && !fingers.size) actions.look(-1, false);
  });
}

/**
 * @param {MapCanvas} map
 * @param {PointerEvent} event
 */
function pointAt(map, event) {
  const reach = (event.pointerType === "touch" ? TOUCH_PIXELS : MOUSE_PIXELS) / (map.scale * map.zoom);
  return map.points?.nearest(...map.toMap(event.offsetX, event.offsetY), reach) ?? -1;
}

/**
 * @param {KeyboardEvent} event
 * @param {MapCanvas} map
 * @param {Actions} actions
 * @returns {boolean} whether the key means something
 */
function press(event, map, actions) {
  const step = STEPS[event.key];
  if (step) {
    if (event.shiftKey) map.moveBy(-PAN_PIXELS * step[0], -PAN_PIXELS * step[1]);
    else actions.look(neighbour(map, step), true);
    return true;
  }
  switch (event.key) {
    case "+":
    case "=":
      map.zoomBy(1.4);
      return true;
    case "-":
      map.zoomBy(1 / 1.4);
      return true;
    case "0":
    case "Home":
      map.fit();
      return true;
    case "Enter":
      if (map.current >= 0) actions.open(map.current);
      return map.current >= 0;
    case " ":
      if (map.current >= 0) actions.toggle(map.current);
      return true;
    case "Escape":
      actions.clear();
      return true;
    default:
      return false;
  }
}

/**
 * Return the next point in a direction, among the hits if there are some; first the one in the middle.
 * @param {MapCanvas} map
 * @param {Point} step
 */
function neighbour(map, step) {
  const { points, current } = map;
  if (!points) return -1;
  const among = map.hits.length ? map.hits : [...points.places.keys()];
  if (current < 0 && map.hits.length) return at(map.hits, 0);
  if (current < 0) return points.nearest(...map.middle, 2 * (points.right - points.left + points.bottom - points.top) || 1);
  const next = points.towards(current, step[0], step[1], among);
  const index = next < 0 ? current : next;
  const [x, y] = map.toScreen(at(points.x, index), at(points.y, index));
  const isOutside = x < 20 || y < 20 || x > map.canvas.clientWidth - 20 || y > map.canvas.clientHeight - 20;
  if (isOutside) map.moveBy(map.canvas.clientWidth / 2 - x, map.canvas.clientHeight / 2 - y);
  return index;
}

/**
 * @param {Point} a
 * @param {Point} b
 */
function distance(a, b) {
  return Math.hypot(a[0] - b[0], a[1] - b[1]);
}
