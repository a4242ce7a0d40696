/**
 * What the npm package is made of and what npm installs with it, with licences: the notices, and a bill of materials.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { environment, Failure, NIGHTLY, ROOT, WASM_TARGET } from "../toolchain.mjs";

/** Crates whose code is in the package: the Worker and the commands. */
const CRATES = ["anteroom", "anteroom-command"];
/** JavaScript that is put into one file, from where; `src/edge/entry.js` imports what the build makes. */
const BUNDLES = ["src/edge/entry.js", "static/dashboard/main.js", "static/waiting.js", "static/health.js"];

/**
 * @typedef {{
 *   id: string, type: "library" | "data", name: string, version: string, licence: string, purl?: string,
 *   isInside: boolean, texts: string[], needs: string[],
 * }} Material `id`: its package URL, or its name; `licence`: in SPDX; `isInside`: it is a part of the package, not
 *   installed beside it; `texts`: of its licences; `needs`: ids
 */

/** @param {string} directory @returns {string[]} the texts of licences in it */
function textsIn(directory) {
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /^(licen[cs]e|copying|notice|unlicense|copyright)/i.test(entry.name))
    .map(({ name }) => readFileSync(join(directory, name), "utf8").trim())
    .sort();
}

/** @returns {Material[]} crates, as cargo resolves them for WebAssembly */
function crates() {
  const args = ["metadata", "--format-version=1", "--locked", `--filter-platform=${WASM_TARGET}`];
  const env = environment({ RUSTUP_TOOLCHAIN: NIGHTLY });
  const { packages, resolve } = JSON.parse(
    execFileSync("cargo", args, { cwd: ROOT, env, maxBuffer: 2 ** 28, encoding: "utf8" }),
  );
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  const infos = new Map(packages.map((info) => [info.id, info]));
  const purl = ({ name, version }) => `pkg:cargo/${name}@${version}`;
  const found = new Map();
  const visit = (id) => {
    if (found.has(id)) return;
    const info = infos.get(id);
    // What runs while it is compiled, or tested, is no part of it.
    const needs = nodes
      .get(id)
      .deps.filter(({ dep_kinds: kinds }) => kinds.some(({ kind }) => kind === null))
      .map(({ pkg }) => pkg);
    found.set(id, {
      ...{ id: purl(info), purl: purl(info), type: "library", name: info.name, version: info.version },
      licence: info.license?.replaceAll("/", " OR "),
      isInside: true,
      // The parts of this workspace are under the licence of the package.
      texts: info.source ? textsIn(dirname(info.manifest_path)) : [],
      needs: needs.map((need) => purl(infos.get(need))).sort(),
    });
    needs.forEach(visit);
  };
  for (const { id, name } of packages) if (CRATES.includes(name)) visit(id);
  return [...found.values()];
}

/** @returns {Promise<Material[]>} packages whose code is in the Worker's scripts */
async function bundled() {
  const { build } = await import("esbuild");
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: BUNDLES,
    ...{ bundle: true, write: false, metafile: true, outdir: "out", format: "esm" },
    external: ["../../build/*", "../../../build/*", "cloudflare:*"],
    loader: { ".txt": "text", ".css": "text" },
  });
  const names = Object.keys(metafile.inputs).map(
    (path) => path.match(/node_modules\/((@[^/]+\/)?[^/]+)\//)?.[1],
  );
  return [...new Set(names.filter(Boolean))].map((name) => {
    const directory = join(ROOT, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
    const purl = purlOf(name, version);
    return {
      ...{ id: `${purl}#inside`, purl, type: "library", name, version, licence: license },
      ...{ isInside: true, texts: textsIn(directory), needs: [] },
    };
  });
}

const purlOf = (name, version) => `pkg:npm/${name.replace("@", "%40")}@${version}`;

/**
 * @param {Record<string, any>} lock what npm installs, as `lockOf` has it
 * @returns {Material[]}
 */
function installed(lock) {
  const all = Object.entries(lock).map(([path, { version, license, dependencies, optionalDependencies }]) => {
    const name = path.split("node_modules/").at(-1);
    const needs = Object.keys({ ...dependencies, ...optionalDependencies });
    const purl = purlOf(name, version);
    return {
      ...{ id: purl, purl, type: "library", name, version, licence: license, isInside: false, texts: [] },
      needs: needs.flatMap((need) => {
        const near = [`${path}/node_modules/${need}`, `node_modules/${need}`].find((place) => lock[place]);
        return near ? [purlOf(need, lock[near].version)] : [];
      }),
    };
  });
  return [...new Map(all.map((material) => [material.id, material])).values()];
}

/** What no registry lists. @returns {Material[]} */
function others() {
  const sysroot = execFileSync("rustc", ["--print", "sysroot"], {
    env: environment({ RUSTUP_TOOLCHAIN: NIGHTLY }),
    encoding: "utf8",
  }).trim();
  const library = join(sysroot, "lib", "rustlib", "src", "rust", "library");
  const texts = existsSync(library) ? textsIn(library) : [];
  const inside = { isInside: true, needs: [] };
  return [
    {
      ...{ id: "rust-std", type: "library", name: "The Rust standard library", version: NIGHTLY, ...inside },
      licence: "MIT OR Apache-2.0",
      texts: texts.length > 0 ? texts : ["Copyright (c) The Rust Project Contributors"],
    },
    {
      ...{ id: "natural-earth", type: "data", name: "Natural Earth", version: "1:110m", ...inside },
      licence: "LicenseRef-public-domain",
      texts: [
        "The outline of the dashboard's map. Made with Natural Earth, naturalearthdata.com. In the public domain.",
      ],
    },
  ];
}

/**
 * @param {Record<string, any>} lock as {@link installed} has it
 * @returns {Promise<Material[]>} in the order of their names
 */
export async function materials(lock) {
  const all = [...crates(), ...(await bundled()), ...installed(lock), ...others()];
  const unknown = all.find(({ licence }) => typeof licence !== "string" || licence === "");
  if (unknown) throw new Failure(`${unknown.id} says no licence`);
  return all.sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** @param {Material[]} all @returns {string} what must be said of everything inside; each text once, after its packages */
export function notices(all) {
  const byText = new Map();
  for (const { name, version, licence, texts } of all.filter(({ isInside }) => isInside)) {
    const line = `${name} ${version} (${licence})`;
    for (const text of texts.length > 0 ? texts : [""]) byText.set(text, [...(byText.get(text) ?? []), line]);
  }
  const part = ([text, lines]) => `${lines.join("\n")}\n${text && `\n${text}\n`}`;
  const head = "What Anteroom's package contains of others, and of Anteroom's own parts, with licences.\n";
  return [head, ...[...byText].map(part)].join(`\n${"-".repeat(80)}\n\n`);
}

/**
 * @param {Material[]} all
 * @param {{ name: string, version: string, licence: string }} whole
 * @returns {Promise<string>} a bill of materials: CycloneDX 1.6, JSON. It has no time and no serial number, so that the same
 *   commit has the same bill.
 */
export async function bill(all, { name, version, licence }) {
  const { Enums, Models, Serialize, Spec } = await import("@cyclonedx/cyclonedx-library");
  const licences = (expression) =>
    new Models.LicenseRepository([
      expression.startsWith("LicenseRef-")
        ? new Models.NamedLicense(expression.slice("LicenseRef-".length))
        : new Models.LicenseExpression(expression),
    ]);
  const bom = new Models.Bom();
  const root = new Models.Component(Enums.ComponentType.Application, name, {
    ...{ bomRef: name, version, purl: purlOf(name, version), licenses: licences(licence) },
  });
  bom.metadata.component = root;
  const components = new Map();
  for (const { id, type, name, version, licence, purl, isInside } of all) {
    const kind = type === "data" ? Enums.ComponentType.Data : Enums.ComponentType.Library;
    const component = new Models.Component(kind, name, {
      ...{ bomRef: id, version, purl, licenses: licences(licence), scope: Enums.ComponentScope.Required },
      properties: new Models.PropertyRepository([new Models.Property("anteroom:inside", `${isInside}`)]),
    });
    components.set(id, component);
    bom.components.add(component);
  }
  const needed = new Set(all.flatMap(({ needs }) => needs));
  for (const { id, needs } of all) {
    for (const need of needs) components.get(id).dependencies.add(components.get(need).bomRef);
    if (!needed.has(id)) root.dependencies.add(components.get(id).bomRef);
  }
  const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6));
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`;
}
