// Draw many small discs into the pixels of an image: tens of thousands in a few milliseconds, also without a graphics card.

/** @typedef {[number, number, number]} Rgb */

const OPACITY = 0.88; // less than 1: edges show where discs lie over each other
const probe = /** @type {CanvasRenderingContext2D} */ (
  Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true })
);

/**
 * Return the red, green and blue of a colour as CSS writes it.
 * @param {string} color
 * @returns {Rgb}
 */
export function toRgb(color) {
  probe.fillStyle = color;
  probe.fillRect(0, 0, 1, 1);
  const [red = 0, green = 0, blue = 0] = probe.getImageData(0, 0, 1, 1).data;
  return [red, green, blue];
}

/**
 * Return a colour between two.
 * @param {Rgb} from
 * @param {Rgb} to
 * @param {number} part
 * @returns {Rgb}
 */
export function mix(from, to, part) {
  return [from[0] + (to[0] - from[0]) * part, from[1] + (to[1] - from[1]) * part, from[2] + (to[2] - from[2]) * part];
}

/** A disc: how much of each pixel around its middle it covers, from 0 to 256. */
export class Stamp {
  /** @param {number} radius in pixels */
  constructor(radius) {
    this.reach = Math.ceil(radius);
    this.size = 2 * this.reach + 1;
    this.cover = new Uint16Array(this.size * this.size);
    for (let y = -this.reach; y <= this.reach; y++) {
      for (let x = -this.reach; x <= this.reach; x++) {
        const part = Math.min(Math.max(radius + 0.5 - Math.hypot(x, y), 0), 1);
        this.cover[(y + this.reach) * this.size + x + this.reach] = Math.round(part * OPACITY * 256);
      }
    }
  }
}

export class Raster {
  /**
   * @param {number} width
   * @param {number} height
   */
  constructor(width, height) {
    this.image = new ImageData(width, height);
    this.pixels = this.image.data;
    this.words = new Uint32Array(this.pixels.buffer); // a pixel each, to fill quickly
  }

  /** @param {Rgb} color */
  clear([red, green, blue]) {
    this.pixels.set([red, green, blue, 255]);
    this.words.fill(/** @type {number} */ (this.words[0]));
  }

  /**
   * Draw a disc; what is outside is left out.
   * @param {Stamp} stamp
   * @param {number} middleX
   * @param {number} middleY
   * @param {Rgb} color
   */
  draw(stamp, middleX, middleY, [red, green, blue]) {
    const { width, height } = this.image;
    const { pixels } = this;
    const { cover, size } = stamp;
    const [left, top] = [Math.round(middleX) - stamp.reach, Math.round(middleY) - stamp.reach];
    const [firstX, lastX] = [Math.max(0, -left), Math.min(size, width - left)];
    const [firstY, lastY] = [Math.max(0, -top), Math.min(size, height - top)];
    for (let y = firstY; y < lastY; y++) {
      let at = 4 * ((top + y) * width + left + firstX);
      for (let x = firstX; x < lastX; x++, at += 4) {
        const part = /** @type {number} */ (cover[y * size + x]);
        if (!part) continue;
        const [oldRed, oldGreen, oldBlue] = [/** @type {number} */ (pixels[at]), /** @type {number} */ (pixels[at + 1]), /** @type {number} */ (pixels[at + 2])];
        pixels[at] = oldRed + (((red - oldRed) * part) >> 8);
        pixels[at + 1] = oldGreen + (((green - oldGreen) * part) >> 8);
        pixels[at + 2] = oldBlue + (((blue - oldBlue) * part) >> 8);
      }
    }
  }
}
