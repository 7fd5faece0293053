// Draw the points of a map, all of them in one pass for each frame, and what is marked above them.

import { isFree, MapAreas } from "./map_areas.js";
import { at, clamp } from "./map_points.js";
import { mix, Raster, Stamp, toRgb } from "./map_raster.js";

/** @typedef {import("./map_points.js").Points} Points */
/** @typedef {import("./map_points.js").Point} Point */
/** @typedef {import("./map_raster.js").Rgb} Rgb */
/** @typedef {[number, number, number, number]} Box left, top, right and bottom */

const MAX_MARGIN = 56; // around all points, in pixels
const MAX_ZOOM = 60;
const FADED = 0.16;
const FADED_NAME = 0.55; // of an area, while hits are lit
const FEW = 100; // points that are drawn larger, and in view have their names beside them
const MANY = 4000; // points that are drawn smaller
const LABEL_CHARS = 28;
const ZOOM_MILLISECONDS = 280;

export class MapCanvas {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    /** @type {Points | null} */
    this.points = null;
    /** @type {string[]} the colour of each group */
    this.colors = [];
    this.areas = new MapAreas([], "", 1);
    /** @type {Box} where buttons are, and no names */
    this.reserved = [0, 0, 0, 0];
    this.moved = () => {}; // is called when another part of the map is seen
    this.ink = "#000";
    this.paper = "#fff";
    this.accent = "#a40";
    this.font = "sans-serif";
    /** @type {Set<number>} groups that are faded */
    this.faded = new Set();
    /** @type {Set<number>} points that were chosen */
    this.chosen = new Set();
    /** @type {number[]} points that a query has found, the best first */
    this.hits = [];
    /** @type {Point | null} where the query is */
    this.query = null;
    /** @type {Point[]} the line that is being drawn */
    this.lasso = [];
    this.current = -1; // the point below the pointer or with the focus
    this.zoom = 1;
    /** @type {Point} the place of the map that is in the middle */
    this.middle = [0, 0];
    this.scale = 1; // pixels of a unit at zoom 1
    this.frames = 0;
    this.isAsked = false;
    /** @type {Raster | null} */
    this.raster = null;
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  resize() {
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(this.canvas.clientHeight * ratio);
    this.raster = this.canvas.width && this.canvas.height ? new Raster(this.canvas.width, this.canvas.height) : null;
    this.measure();
    this.draw();
  }

  /** @param {Points} points */
  show(points) {
    const isFirst = this.points === null;
    this.points = points;
    this.measure();
    if (isFirst || this.zoom === 1) this.fit(); // otherwise somebody looks at a part of it
    this.draw();
  }

  /** Choose the scale at which all points fit. */
  measure() {
    if (!this.points) return;
    const { left, right, top, bottom } = this.points;
    const width = Math.max(this.canvas.clientWidth - 2 * this.margin, 40);
    const height = Math.max(this.canvas.clientHeight - 2 * this.margin, 40);
    this.scale = Math.min(width / (right - left || 1), height / (bottom - top || 1));
  }

  fit() {
    if (!this.points) return;
    this.zoom = 1;
    this.middle = [(this.points.left + this.points.right) / 2, (this.points.top + this.points.bottom) / 2];
    this.moved();
    this.draw();
  }

  /**
   * Show an area as large as it fits.
   * @param {import("./map_areas.js").Area} area
   */
  zoomTo({ box: [left, top, right, bottom] }) {
    const width = (right - left) * this.scale || 1;
    const height = (bottom - top) * this.scale || 1;
    const room = Math.min((this.canvas.clientWidth - this.margin) / width, (this.canvas.clientHeight - this.margin) / height);
    const [fromZoom, [fromX, fromY]] = [this.zoom, this.middle];
    const toZoom = clamp(room, 1, MAX_ZOOM);
    const [toX, toY] = [(left + right) / 2, (top + bottom) / 2];
    const begun = performance.now();
    const lasts = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : ZOOM_MILLISECONDS;
    const step = () => {
      const part = lasts ? Math.min((performance.now() - begun) / lasts, 1) : 1;
      const eased = part * part * (3 - 2 * part);
      this.zoom = fromZoom * (toZoom / fromZoom) ** eased;
      // What is in the middle moves as on a straight line of the screen, faster where it is seen from farther away.
      const way = toZoom === fromZoom ? eased : (1 / this.zoom - 1 / fromZoom) / (1 / toZoom - 1 / fromZoom);
      this.middle = [fromX + (toX - fromX) * way, fromY + (toY - fromY) * way];
      this.draw();
      if (part < 1) requestAnimationFrame(step);
      else this.moved();
    };
    step();
  }

  /**
   * @param {number} x of the map
   * @param {number} y
   * @returns {Point} in pixels
   */
  toScreen(x, y) {
    const pixels = this.scale * this.zoom;
    return [(x - this.middle[0]) * pixels + this.canvas.clientWidth / 2, (y - this.middle[1]) * pixels + this.canvas.clientHeight / 2];
  }

  /**
   * @param {number} x in pixels
   * @param {number} y
   * @returns {Point} of the map
   */
  toMap(x, y) {
    const pixels = this.scale * this.zoom;
    return [(x - this.canvas.clientWidth / 2) / pixels + this.middle[0], (y - this.canvas.clientHeight / 2) / pixels + this.middle[1]];
  }

  /**
   * Zoom so that a place stays where it is.
   * @param {number} factor
   * @param {number} [x] in pixels
   * @param {number} [y]
   */
  zoomBy(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const [mapX, mapY] = this.toMap(x, y);
    this.zoom = clamp(this.zoom * factor, 0.5, MAX_ZOOM);
    const [newX, newY] = this.toMap(x, y);
    this.middle = [this.middle[0] + mapX - newX, this.middle[1] + mapY - newY];
    this.moved();
    this.draw();
  }

  /**
   * @param {number} x in pixels
   * @param {number} y
   */
  moveBy(x, y) {
    const pixels = this.scale * this.zoom;
    this.middle = [this.middle[0] - x / pixels, this.middle[1] - y / pixels];
    if (this.points) {
      const { left, right, top, bottom } = this.points; // nobody gets lost in empty space
      this.middle = [clamp(this.middle[0], left, right), clamp(this.middle[1], top, bottom)];
    }
    this.moved();
    this.draw();
  }

  /** The points that can be seen. */
  inView() {
    const [left, top] = this.toMap(0, 0);
    const [right, bottom] = this.toMap(this.canvas.clientWidth, this.canvas.clientHeight);
    return this.points?.inside(left, top, right, bottom) ?? [];
  }

  get margin() {
    return Math.min(MAX_MARGIN, this.canvas.clientWidth / 12);
  }

  get radius() {
    const count = this.points?.length ?? 0;
    const base = count > MANY ? 2.2 : count > FEW ? 3.6 : 5.5;
    return Math.min(base * this.zoom ** 0.3, 8);
  }

  /** Draw with the next frame, once however often this is asked for. */
  draw() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.frames++;
      this.paint();
    });
  }

  paint() {
    const { context, canvas, points, raster } = this;
    if (!points || !raster) return;
    const ratio = canvas.width / (canvas.clientWidth || 1);
    const radius = this.radius;
    const stamp = new Stamp(radius * ratio);
    const paper = toRgb(this.paper);
    const colors = this.colors.map(toRgb);
    const isFaded = colors.map((_, group) => this.hits.length > 0 || this.faded.has(group));
    raster.clear(paper);
    // What is lit lies over what is faded.
    this.paintPoints(points, raster, stamp, colors.map((color, group) => (isFaded[group] ? mix(paper, color, FADED) : null)));
    this.paintPoints(points, raster, stamp, colors.map((color, group) => (isFaded[group] ? null : color)));
    context.putImageData(raster.image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paintMarks(radius);
    this.paintLabels(radius);
  }

  /**
   * Draw the points of the groups that have a colour.
   * @param {Points} points
   * @param {Raster} raster
   * @param {Stamp} stamp
   * @param {(Rgb | null)[]} colors
   */
  paintPoints(points, raster, stamp, colors) {
    const { width, height } = raster.image;
    const pixels = this.scale * this.zoom * (width / (this.canvas.clientWidth || 1));
    const shiftX = width / 2 - this.middle[0] * pixels;
    const shiftY = height / 2 - this.middle[1] * pixels;
    const edge = stamp.reach;
    for (const index of points.shuffled) {
      const color = colors[at(points.group, index)];
      if (!color) continue;
      const x = at(points.x, index) * pixels + shiftX;
      const y = at(points.y, index) * pixels + shiftY;
      if (x > -edge && y > -edge && x < width + edge && y < height + edge) raster.draw(stamp, x, y, color);
    }
  }

  /**
   * Write names: beside points those of hits, then of areas, and of other points if there are few; none over another.
   * @param {number} radius
   */
  paintLabels(radius) {
    const { points } = this;
    if (!points) return;
    const seen = this.inView();
    const others = this.hits.length || seen.length > FEW ? [] : seen.filter((index) => !this.faded.has(points.places[index]?.group ?? 0));
    /** @type {Box[]} */
    const taken = [this.reserved];
    this.paintNames(this.hits, radius, taken);
    this.areas.place(this, taken);
    this.areas.paint(this, this.hits.length ? FADED_NAME : 1);
    taken.push(...this.areas.shown.map(({ room }) => room));
    this.paintNames(others, radius, taken);
  }

  /**
   * @param {number[]} named
   * @param {number} radius
   * @param {Box[]} taken gets the rooms of these points and of their names
   */
  paintNames(named, radius, taken) {
    const { context, points, canvas } = this;
    if (!points) return;
    for (const index of named) {
      const [x, y] = this.toScreen(at(points.x, index), at(points.y, index));
      taken.push([x - radius, y - radius, x + radius, y + radius]);
    }
    context.font = `12px ${this.font}`;
    for (const index of named) {
      const [x, y] = this.toScreen(at(points.x, index), at(points.y, index));
      const text = label(points.places[index]?.title || points.places[index]?.path || "");
      const width = context.measureText(text).width;
      const room = freeBox(x, y, width, radius + 5, canvas.clientWidth, taken);
      if (!room) continue;
      taken.push(room);
      this.write(text, room[0], (room[1] + room[3]) / 2, 3);
    }
  }

  /**
   * Write with the font of the context, and paper around each letter.
   * @param {string} text
   * @param {number} left
   * @param {number} middle
   * @param {number} halo
   */
  write(text, left, middle, halo) {
    const { context } = this;
    context.textBaseline = "middle";
    context.lineWidth = halo;
    context.lineJoin = "round";
    context.strokeStyle = this.paper;
    context.strokeText(text, left, middle);
    context.fillStyle = this.ink;
    context.fillText(text, left, middle);
  }

  /** @param {number} radius */
  paintMarks(radius) {
    const { context, points } = this;
    if (!points) return;
    for (const index of [...this.hits].reverse()) this.paintPoint(index, radius + 2.5, this.accent, true);
    for (const index of this.chosen) this.paintPoint(index, radius + 1.5, this.ink, false);
    if (this.query) {
      const [x, y] = this.toScreen(...this.query);
      context.strokeStyle = this.accent;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x, y, 11, 0, 7);
      for (const [stepX, stepY] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
        context.moveTo(x + 7 * /** @type {number} */ (stepX), y + 7 * /** @type {number} */ (stepY));
        context.lineTo(x + 16 * /** @type {number} */ (stepX), y + 16 * /** @type {number} */ (stepY));
      }
      context.stroke();
    }
    if (this.current >= 0) this.paintPoint(this.current, radius + 4, this.ink, false);
    if (this.lasso.length > 1) {
      context.beginPath();
      for (const [x, y] of this.lasso) context.lineTo(x, y);
      context.closePath();
      context.globalAlpha = 0.12;
      context.fillStyle = this.accent;
      context.fill();
      context.globalAlpha = 1;
      context.setLineDash([5, 4]);
      context.strokeStyle = this.accent;
      context.lineWidth = 1.5;
      context.stroke();
      context.setLineDash([]);
    }
  }

  /**
   * Draw one point with a ring around it.
   * @param {number} index
   * @param {number} radius
   * @param {string} ring
   * @param {boolean} isFilled
   */
  paintPoint(index, radius, ring, isFilled) {
    const { context, points } = this;
    if (!points) return;
    const [x, y] = this.toScreen(at(points.x, index), at(points.y, index));
    context.beginPath();
    context.arc(x, y, radius, 0, 7);
    if (isFilled) {
      context.fillStyle = this.colors[points.places[index]?.group ?? 0] ?? ring;
      context.fill();
    }
    context.strokeStyle = ring;
    context.lineWidth = 2;
    context.stroke();
  }
}

/**
 * Return a place for a name beside a point: right, left, above or below it; null if there is none.
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} gap
 * @param {number} end of the canvas
 * @param {Box[]} taken
 * @returns {Box | null}
 */
function freeBox(x, y, width, gap, end, taken) {
  const half = 8; // of the height of a line
  for (const [left, middle] of [[x + gap, y], [x - gap - width, y], [x - width / 2, y - gap - 5], [x - width / 2, y + gap + 5]]) {
    const [first, line] = [/** @type {number} */ (left), /** @type {number} */ (middle)];
    /** @type {Box} */
    const box = [first, line - half, first + width, line + half];
    if (taken.every((other) => isFree(box, other)) && box[0] >= 0 && box[2] <= end) return box;
  }
  return null;
}

/** @param {string} name */
function label(name) {
  const characters = [...name];
  return characters.length > LABEL_CHARS ? `${characters.slice(0, LABEL_CHARS - 1).join("")}…` : name;
}
