/**
 * The owner's branding of Anteroom's own waiting page: `custom_page_html = "sale"` with a file `static/pages/sale.toml`
 * instead of a template. docs/pages.md says what may be in it.
 */
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { formatHex, interpolate, parse as parseColour, wcagContrast, wcagLuminance } from "culori";
import { parse, TomlError } from "smol-toml";
import { meant } from "./templates.mjs";

const LOGO_TYPES = { ".svg": "svg+xml", ".png": "png", ".webp": "webp", ".jpg": "jpeg" };
/** It is in every page that is sent. */
const LARGEST_LOGO = 20_480;
const LONGEST_TEXT = 1_000;
const MOST_LINKS = 10;
/** Of text on its ground (WCAG 2.2, 1.4.3). */
const LEAST_CONTRAST = 4.5;
/** What falls through the door. */
const LAMP = "#ffcb70";
/** A ground that is darker has light ink. */
const DARK = 0.18;

const COLOURS = ["paper", "ink", "accent"];
const LIGHTS = { light: [...COLOURS, "logo"], dark: [...COLOURS, "logo"] };
const FIELDS = ["logo_text", "picture", "font", "consent", "links", ...Object.keys(LIGHTS)];

const mix = (one, other, share) => formatHex(interpolate([one, other], "oklab")(share));

/** All colours of the page, by the names in waiting.css, from the three that the owner gives. */
function palette({ paper, ink, accent }) {
  const isDark = wcagLuminance(paper) < DARK;
  const quiet = [0.35, 0.25, 0.15, 0].map((share) => mix(ink, paper, share));
  const ground = (share) => mix(paper, accent, share);
  const wood = isDark ? mix(accent, paper, 0.6) : mix(accent, ink, 0.3);
  return {
    paper,
    ink,
    accent,
    quiet: quiet.find((colour) => wcagContrast(colour, paper) >= LEAST_CONTRAST),
    rule: mix(paper, ink, 0.16),
    wall: ground(0.14),
    skirting: ground(0.22),
    floor: ground(0.32),
    frame: isDark ? ground(0.4) : paper,
    wood,
    panel: mix(wood, isDark ? paper : ink, 0.2),
    brass: accent,
    glow: isDark ? mix(paper, LAMP, 0.22) : mix(paper, LAMP, 0.45),
    bar: accent,
  };
}

/** A part of a file being read: every mistake is noted with its line, and reading goes on. */
class Reader {
  problems = [];

  constructor(source, folder) {
    this.source = source;
    this.folder = folder;
  }

  /** @param {string} field where the mistake is; its first line is told */
  refuse(field, message) {
    const at = this.source.split("\n").findIndex((line) => new RegExp(`^\\W*${field}\\W`).test(line));
    this.problems.push({ line: Math.max(at, 0) + 1, message: `${field} ${message}` });
  }

  known(table, fields) {
    for (const field of Object.keys(table))
      if (!fields.includes(field)) this.refuse(field, `is not known${meant(field, fields)}`);
  }

  /** One text, or one for each language. */
  text(field, given, longest = LONGEST_TEXT) {
    if (given === undefined) return undefined;
    const texts = typeof given === "string" ? [given] : Object.values(given);
    const fits = (text) => typeof text === "string" && text.trim() !== "" && text.length <= longest;
    if (texts.length > 0 && texts.every(fits)) return given;
    this.refuse(field, `must be text of 1 to ${longest} characters, or { en-US = "...", de-DE = "..." }`);
  }

  colours(name, light) {
    const given = COLOURS.filter((colour) => light[colour] !== undefined);
    if (given.length === 0) return undefined;
    const isOpaque = (colour) => colour !== undefined && (colour.alpha ?? 1) === 1;
    const wrong = COLOURS.filter((colour) => !isOpaque(parseColour(`${light[colour]}`)));
    for (const colour of wrong)
      this.refuse(
        given.includes(colour) ? colour : name,
        `must have ${colour} = "#1c1c1c", an opaque colour`,
      );
    if (wrong.length > 0) return undefined;
    const [paper, ink, accent] = COLOURS.map((colour) => formatHex(light[colour]));
    for (const [colour, value] of Object.entries({ ink, accent })) {
      const contrast = wcagContrast(value, paper);
      if (contrast < LEAST_CONTRAST)
        this.refuse(
          name,
          `has a contrast of ${contrast.toFixed(1)} to 1 between ${colour} and paper, and needs ${LEAST_CONTRAST}`,
        );
    }
    return palette({ paper, ink, accent });
  }

  /** A picture as it stands in the page. */
  logo(file) {
    if (file === undefined) return undefined;
    const type = LOGO_TYPES[extname(`${file}`).toLowerCase()];
    if (!type || /[\\/]/.test(file))
      return this.refuse("logo", `must be a file beside this one: ${Object.keys(LOGO_TYPES).join(", ")}`);
    let bytes;
    try {
      bytes = readFileSync(join(this.folder, file));
    } catch {
      return this.refuse("logo", `is ${file}, and there is no such file beside this one`);
    }
    if (bytes.length > LARGEST_LOGO)
      return this.refuse("logo", `has ${bytes.length} bytes, and may have at most ${LARGEST_LOGO}`);
    return `data:image/${type};base64,${bytes.toString("base64")}`;
  }

  links(given = []) {
    if (!Array.isArray(given) || given.length > MOST_LINKS) {
      this.refuse("links", `must be up to ${MOST_LINKS} tables: [[links]]`);
      return [];
    }
    return given.map((link) => {
      this.known(link, ["text", "url"]);
      if (link.text === undefined) this.refuse("links", "must have a text each");
      if (!/^(https:\/\/|mailto:)\S+$/.test(link.url))
        this.refuse("links", `must have a url each that begins with https:// or mailto:, not ${link.url}`);
      return { text: this.text("links", link.text), url: link.url };
    });
  }
}

const declarations = (colours) => Object.entries(colours).map(([name, value]) => `--${name}:${value};`);

/** What comes after the page's own style. */
function styleOf({ light, dark, font, picture }) {
  return [
    light && `:root { ${declarations(light).join("")} }`,
    dark && `@media (prefers-color-scheme: dark) { :root { ${declarations(dark).join("")} } }`,
    font && `body, .wait, .say { font-family: ${font}; }`,
    !picture && "main { grid-template: 1fr / 1fr; } .words { grid-area: 1 / 1; margin: 0 auto; }",
  ]
    .filter(Boolean)
    .join("\n");
}

/**
 * @param {string} source a file's content
 * @param {string} folder where it and its logo are
 * @returns {{ brand: { style: string, picture: boolean, logo?: string, logoDark?: string, logoText?: any, consent?: any,
 *   links: { text: any, url: string }[] }, problems: { line: number, message: string }[] }}
 *   `style`: what comes after the page's own
 */
export function readBrand(source, folder) {
  const reader = new Reader(source, folder);
  let given = {};
  try {
    given = parse(source);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    reader.problems.push({ line: error.line, message: error.message.split("\n")[0] });
  }
  reader.known(given, FIELDS);
  const lights = Object.entries(LIGHTS).map(([name, fields]) => {
    const light = given[name] ?? {};
    reader.known(light, fields);
    return { colours: reader.colours(name, light), logo: reader.logo(light.logo) };
  });
  const [light, dark] = lights;
  const { font, picture = true } = given;
  if (font !== undefined && !/^[\w\s"',-]{1,200}$/.test(font))
    reader.refuse("font", `must be names of fonts, such as "Georgia, serif"`);
  if (typeof picture !== "boolean") reader.refuse("picture", "must be true or false");
  const logoText = reader.text("logo_text", given.logo_text, 200);
  if ((light.logo || dark.logo) && !logoText)
    reader.refuse("logo", `needs logo_text = "...": what people read who cannot see it`);
  const brand = {
    style: styleOf({ light: light.colours, dark: dark.colours, font, picture }),
    picture,
    logo: light.logo ?? dark.logo,
    logoDark: light.logo && dark.logo,
    logoText,
    consent: reader.text("consent", given.consent),
    links: reader.links(given.links),
  };
  return { brand, problems: reader.problems };
}
