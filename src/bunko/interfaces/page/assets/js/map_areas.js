// The names of the areas of a map: as many as have room, coarse ones from afar and finer ones from near.

import { clamp } from "./map_points.js";

/** @typedef {import("./map_canvas.js").MapCanvas} MapCanvas */
/** @typedef {import("./map_canvas.js").Box} Box */
/** @typedef {{level: number, name: string, names: string[], x: number, y: number, box: Box, count: number}} Area */
/** @typedef {{level: number, names: Record<string, string>, x: number, y: number, box: Box, count: number}} NamedArea */

const SIZES = [16, 13.5, 12.5]; // of the letters of each level
const NARROW = 500; // pixels; on a phone they are smaller
const HALF_LINE = 0.72; // of the size of its letters
const SMALL = 70; // pixels; a finer area that is not wider has no name
const GAP = 5;
const FAINTEST = 0.6; // that can be read

export class MapAreas {
  /**
   * @param {NamedArea[]} areas the coarse ones first, the large ones of a level first
   * @param {string} language of the reader
   * @param {number} stretch of the points
   */
  constructor(areas, language, stretch) {
    /** @type {Area[]} a screen counts downwards */
    this.all = areas.map(({ names, x, y, box: [left, low, right, high], ...area }) => ({
      ...area, x: stretch * x, y: -y, box: [stretch * left, -high, stretch * right, -low], name: names[language] ?? Object.values(names)[0] ?? "",
      names: Object.values(names),
    }));
    /** @type {{area: Area, room: Box, left: number, middle: number, font: string, opacity: number}[]} */
    this.shown = [];
    /** @type {Map<string, number>} how wide each name is written; to measure them for every frame takes as long as to draw */
    this.widths = new Map();
  }

  /**
   * Choose the names that have room, and where they are.
   * @param {MapCanvas} map
   * @param {Box[]} taken by others
   */
  place(map, taken) {
    const { context, canvas } = map;
    this.shown = [];
    for (const area of this.all) {
      const opacity = visibility(area, map);
      const [x, y] = map.toScreen(area.x, area.y);
      if (!opacity || x < 0 || y < 0 || x > canvas.clientWidth || y > canvas.clientHeight) continue;
      const size = (SIZES[area.level] ?? 12) * (canvas.clientWidth < NARROW ? 0.88 : 1);
      const font = `${area.level < 2 ? 650 : 550} ${size}px ${map.font}`;
      const key = `${font}\0${area.name}`;
      const width = this.widths.get(key) ?? measure(context, font, area.name);
      this.widths.set(key, width);
      const left = clamp(x - width / 2, GAP, Math.max(canvas.clientWidth - width - GAP, GAP));
      const half = size * HALF_LINE;
      const middle = clamp(y, half + GAP, canvas.clientHeight - half - GAP);
      /** @type {Box} */
      const room = [left - GAP, middle - half, left + width + GAP, middle + half];
      if (taken.every((other) => isFree(room, other)) && this.shown.every(({ room: other }) => isFree(room, other))) {
        this.shown.push({ area, room, left, middle, font, opacity });
      }
    }
  }

  /**
   * @param {MapCanvas} map
   * @param {number} opacity
   */
  paint(map, opacity) {
    for (const { area, left, middle, font, opacity: own } of this.shown) {
      map.context.font = font;
      map.context.globalAlpha = opacity * own;
      map.write(area.name, left, middle, 4);
    }
    map.context.globalAlpha = 1;
  }

  /**
   * Return the area whose name is at a place of the screen.
   * @param {number} x
   * @param {number} y
   */
  at(x, y) {
    return this.shown.find(({ room: [left, top, right, bottom] }) => x >= left && x <= right && y >= top && y <= bottom)?.area;
  }

  /** The areas that are named where somebody looks, the largest first. */
  inView() {
    return this.shown.map(({ area }) => area).sort((a, b) => a.level - b.level || b.count - a.count);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} font
 * @param {string} name
 */
function measure(context, font, name) {
  context.font = font;
  return context.measureText(name).width;
}

/**
 * @param {Box} box
 * @param {Box} other
 */
export function isFree(box, other) {
  return box[0] > other[2] || box[2] < other[0] || box[1] > other[3] || box[3] < other[1];
}

/**
 * Return how clear a name is, 0 if it is not shown: it comes when its area is wide enough on the screen, and goes when
 * that fills the screen.
 * @param {Area} area
 * @param {MapCanvas} map
 */
function visibility({ level, box: [left, top, right, bottom] }, map) {
  const pixels = map.scale * map.zoom;
  const wide = Math.max(right - left, bottom - top) * pixels;
  const coming = level === 0 ? 1 : clamp((wide - SMALL) / 30, 0, 1);
  const filled = Math.max(((right - left) * pixels) / map.canvas.clientWidth, ((bottom - top) * pixels) / map.canvas.clientHeight);
  const part = Math.min(coming, map.zoom <= 1 ? 1 : clamp((1.4 - filled) / 0.6, 0, 1));
  return part && FAINTEST + (1 - FAINTEST) * part;
}
