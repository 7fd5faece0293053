// The points of a map, and a grid over them that finds those at a place without looking at all of them.

/** @typedef {{tool: string, path: string, title: string, date: string, tags: string[], x: number, y: number, group: number}} Place */
/** @typedef {[number, number]} Point */

const POINTS_OF_A_CELL = 4;
const MAX_STRETCH = 1.8;

/**
 * Return how much wider points may be drawn so that they fill more of a screen.
 * @param {Place[]} places
 * @param {HTMLElement} stage
 */
export function stretchFor(places, stage) {
  const [left, right] = extent(Float32Array.from(places, ({ x }) => x));
  const [low, high] = extent(Float32Array.from(places, ({ y }) => y));
  const shape = (right - left) / (high - low) || 1;
  return clamp(stage.clientWidth / (stage.clientHeight || 1) / shape, 1 / MAX_STRETCH, MAX_STRETCH);
}

export class Points {
  /**
   * @param {Place[]} places
   * @param {number} stretch of the width, towards the shape of the screen: neither direction means anything
   */
  constructor(places, stretch = 1) {
    this.places = places;
    this.stretch = stretch;
    this.x = Float32Array.from(places, (place) => stretch * place.x);
    this.y = Float32Array.from(places, (place) => -place.y); // a screen counts downwards
    this.group = Uint8Array.from(places, (place) => place.group);
    const [left, right] = extent(this.x);
    const [top, bottom] = extent(this.y);
    this.left = left;
    this.right = right;
    this.top = top;
    this.bottom = bottom;
    this.columns = Math.max(1, Math.ceil(Math.sqrt(places.length / POINTS_OF_A_CELL)));
    this.cellWidth = (this.right - this.left) / this.columns || 1;
    this.cellHeight = (this.bottom - this.top) / this.columns || 1;
    this.shuffled = shuffle(this.length);
    this.starts = new Uint32Array(this.columns ** 2 + 1);
    this.order = new Uint32Array(this.length);
    this.fillGrid();
  }

  get length() {
    return this.places.length;
  }

  /** Sort the points by cell: `starts` says where the points of each cell begin in `order`. */
  fillGrid() {
    const cells = new Uint32Array(this.length);
    for (let index = 0; index < this.length; index++) {
      const cell = this.row(at(this.y, index)) * this.columns + this.column(at(this.x, index));
      cells[index] = cell;
      this.starts[cell + 1] = at(this.starts, cell + 1) + 1;
    }
    for (let cell = 1; cell < this.starts.length; cell++) this.starts[cell] = at(this.starts, cell) + at(this.starts, cell - 1);
    const next = this.starts.slice();
    for (let index = 0; index < this.length; index++) {
      const cell = at(cells, index);
      this.order[at(next, cell)] = index;
      next[cell] = at(next, cell) + 1;
    }
  }

  /** @param {number} x */
  column(x) {
    return clamp(Math.floor((x - this.left) / this.cellWidth), 0, this.columns - 1);
  }

  /** @param {number} y */
  row(y) {
    return clamp(Math.floor((y - this.top) / this.cellHeight), 0, this.columns - 1);
  }

  /**
   * Return the points in a rectangle.
   * @param {number} left
   * @param {number} top
   * @param {number} right
   * @param {number} bottom
   */
  inside(left, top, right, bottom) {
    /** @type {number[]} */
    const found = [];
    for (let row = this.row(top); row <= this.row(bottom); row++) {
      const first = row * this.columns;
      const end = at(this.starts, first + this.column(right) + 1);
      for (let place = at(this.starts, first + this.column(left)); place < end; place++) {
        const index = at(this.order, place);
        const [x, y] = [at(this.x, index), at(this.y, index)];
        if (x >= left && x <= right && y >= top && y <= bottom) found.push(index);
      }
    }
    return found;
  }

  /**
   * Return the point that is nearest to a place and not farther than a radius, or -1.
   * @param {number} x
   * @param {number} y
   * @param {number} radius
   */
  nearest(x, y, radius) {
    let best = -1;
    let bestDistance = radius * radius;
    for (const index of this.inside(x - radius, y - radius, x + radius, y + radius)) {
      const distance = (at(this.x, index) - x) ** 2 + (at(this.y, index) - y) ** 2;
      if (distance <= bestDistance) [best, bestDistance] = [index, distance];
    }
    return best;
  }

  /**
   * Return the points inside a closed line, by counting how often a ray from each crosses it.
   * @param {Point[]} line
   */
  enclosed(line) {
    const [left, right] = extent(Float64Array.from(line, ([x]) => x));
    const [top, bottom] = extent(Float64Array.from(line, ([, y]) => y));
    return this.inside(left, top, right, bottom).filter((index) => isEnclosed(at(this.x, index), at(this.y, index), line));
  }

  /**
   * Return the point to go to from another one in a direction: near, and not too far off it. -1 if there is none.
   * @param {number} from
   * @param {number} stepX
   * @param {number} stepY
   * @param {number[]} among
   */
  towards(from, stepX, stepY, among) {
    let best = -1;
    let bestCost = Infinity;
    for (const index of among) {
      const [x, y] = [at(this.x, index) - at(this.x, from), at(this.y, index) - at(this.y, from)];
      const ahead = x * stepX + y * stepY;
      const aside = Math.abs(x * stepY) + Math.abs(y * stepX);
      if (index === from || ahead <= 0 || aside > 2 * ahead) continue;
      const cost = ahead + 2 * aside;
      if (cost < bestCost) [best, bestCost] = [index, cost];
    }
    return best;
  }
}

/**
 * @param {number} x
 * @param {number} y
 * @param {Point[]} line
 */
function isEnclosed(x, y, line) {
  let isInside = false;
  let [beforeX, beforeY] = line[line.length - 1] ?? [0, 0];
  for (const [hereX, hereY] of line) {
    if (hereY > y !== beforeY > y && x < ((beforeX - hereX) * (y - hereY)) / (beforeY - hereY) + hereX) isInside = !isInside;
    [beforeX, beforeY] = [hereX, hereY];
  }
  return isInside;
}

/**
 * Return numbers in a mixed order, always the same: which point lies over another must not depend on its tool or year.
 * @param {number} count
 */
function shuffle(count) {
  const order = Uint32Array.from({ length: count }, (_, index) => index);
  let seed = 1;
  for (let index = count - 1; index > 0; index--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const other = Math.floor((seed / 2 ** 32) * (index + 1));
    const moved = at(order, index);
    order[index] = at(order, other);
    order[other] = moved;
  }
  return order;
}

/**
 * @param {ArrayLike<number>} values
 * @returns {Point}
 */
function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (let index = 0; index < values.length; index++) {
    low = Math.min(low, at(values, index));
    high = Math.max(high, at(values, index));
  }
  return low <= high ? [low, high] : [0, 0];
}

/**
 * @param {ArrayLike<number>} values
 * @param {number} index which it has
 */
export function at(values, index) {
  return /** @type {number} */ (values[index]);
}

/**
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}
