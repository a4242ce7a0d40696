// Pictures for the documentation: a screenshot as a small PNG.
import { crc32, deflateSync } from "node:zlib";

/** Runs in the page: the pixels of an image. */
export async function pixelsOf(base64) {
  const image = new Image();
  image.src = `data:image/png;base64,${base64}`;
  await image.decode();
  const { naturalWidth: width, naturalHeight: height } = image;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  let bytes = "";
  for (let at = 0; at < data.length; at += 32_768) {
    bytes += String.fromCharCode(...data.subarray(at, at + 32_768));
  }
  return { width, height, bytes: btoa(bytes) };
}

function chunk(type, content) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), content]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(content.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

/** A PNG of the 256 most used colours; every other pixel takes the nearest of them. Few flat colours lose nothing. */
export function fewColours({ width, height, bytes }) {
  const pixels = new Uint32Array(new Uint8Array(Buffer.from(bytes, "base64")).buffer);
  const uses = new Map();
  for (const pixel of pixels) uses.set(pixel, (uses.get(pixel) ?? 0) + 1);
  const palette = [...uses]
    .sort((left, right) => right[1] - left[1])
    .slice(0, 256)
    .map(([colour]) => colour);
  const parts = (colour) => [0, 8, 16, 24].map((shift) => (colour >>> shift) & 255);
  const distance = (one, other) => one.reduce((sum, part, index) => sum + (part - other[index]) ** 2, 0);
  const shades = palette.map(parts);
  const index = new Map(palette.map((colour, place) => [colour, place]));
  for (const colour of uses.keys()) {
    if (index.has(colour)) continue;
    const distances = shades.map((shade) => distance(parts(colour), shade));
    index.set(colour, distances.indexOf(Math.min(...distances)));
  }
  const rows = Buffer.alloc(height * (width + 1)); // each begins with its filter: none
  pixels.forEach((colour, at) => {
    rows[Math.floor(at / width) * (width + 1) + 1 + (at % width)] = index.get(colour);
  });
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("PLTE", Buffer.from(shades.flatMap((shade) => shade.slice(0, 3)))),
    chunk("tRNS", Buffer.from(shades.map((shade) => shade[3]))),
    chunk("IDAT", deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}
