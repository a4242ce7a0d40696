/**
 * `npm run package`: the npm package `anteroom`, packed, in build/package/. It has the Worker and the commands compiled; of
 * the tools it has those that tools/anteroom.mjs calls, in the same places as here, with the same versions of what they
 * import.
 */
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build, bundleEntry } from "./build.mjs";
import { bill, materials, notices } from "./package/materials.mjs";
import { main, ROOT, run } from "./toolchain.mjs";
import { compileCommands } from "./wasm.mjs";

/** Where packages are made. */
export const PACKAGES = join(ROOT, "build", "package");
/** The package as a directory. */
export const DIRECTORY = join(PACKAGES, "anteroom");
/** Of the tools, but only of use in the repository. */
const ONLY_HERE = ["./build.mjs", "./setup.mjs"];
/** What else is taken as it is. */
const FILES = ["LICENSE", "CHANGELOG.md", "wrangler.toml", "tools/init", "tools/serve"];

const json = (path) => JSON.parse(readFileSync(join(ROOT, path), "utf8"));

/** @returns {Promise<{ files: string[], packages: string[] }>} what the command's tools are made of, and import */
async function toolsOfCommand() {
  const { build: bundle } = await import("esbuild");
  const { COMMANDS } = await import("./anteroom.mjs");
  const names = Object.values(COMMANDS).map(([file]) => file);
  const { metafile } = await bundle({
    absWorkingDir: ROOT,
    entryPoints: ["anteroom.mjs", ...new Set(names)].map((name) => `tools/${name}`),
    ...{ bundle: true, write: false, metafile: true, outdir: "out", format: "esm", platform: "node" },
    packages: "external",
    external: [...ONLY_HERE, "../build/*"],
  });
  const imported = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path));
  const packages = imported
    .filter((path) => !/^(node:|\.)/.test(path))
    .map((path) => path.match(/^(@[^/]+\/)?[^/]+/)[0]);
  const here = (name) => name === "esbuild";
  return {
    files: Object.keys(metafile.inputs),
    packages: [...new Set(packages)].filter((name) => !here(name)),
  };
}

/**
 * What npm installs for packages, in the versions that are tested here.
 * @param {string[]} names
 * @returns {Record<string, any>} as in a lock file
 */
export function lockOf(names) {
  const { packages } = json("package-lock.json");
  const found = {};
  const visit = (name, from) => {
    // As Node looks for it: beside whoever imports it, then further up.
    for (let at = from; ; at = at.replace(/(^|\/)node_modules\/(@[^/]+\/)?[^/]+$/, "")) {
      const path = `${at && `${at}/`}node_modules/${name}`;
      const entry = packages[path];
      if (entry) {
        if (found[path]) return;
        const { dev, devOptional, version, dependencies, optionalDependencies, ...kept } = entry;
        found[path] = {
          version,
          ...(devOptional && { optional: true }),
          ...{ dependencies, optionalDependencies, ...kept },
        };
        for (const next of Object.keys({ ...dependencies, ...optionalDependencies })) visit(next, path);
        return;
      }
      if (at === "") return;
    }
  };
  for (const name of names) visit(name, "");
  return Object.fromEntries(Object.entries(found).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Makes the package's directory. @returns {Promise<string>} */
export async function assemble() {
  await build();
  const directory = DIRECTORY;
  rmSync(directory, { recursive: true, force: true });
  const made = join(directory, "build");
  mkdirSync(made, { recursive: true });
  // The owner's templates are put beside the script, in the project.
  await bundleEntry(join(ROOT, "build", "worker.js"), ["--external:./build/pages.js"]);
  renameSync(join(ROOT, "build", "worker.js"), join(made, "index.js"));
  for (const name of ["pages.js", "index_bg.wasm"]) cpSync(join(ROOT, "build", name), join(made, name));
  await compileCommands(join(made, "commands"));
  const { files, packages } = await toolsOfCommand();
  for (const file of [...files, ...FILES]) {
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    cpSync(join(ROOT, file), join(directory, file), { recursive: true });
  }
  cpSync(join(ROOT, "tools", "package", "README.md"), join(directory, "README.md"));
  const { name, version, description, license, devDependencies, optionalDependencies } = json("package.json");
  const wanted = [...packages, "wrangler"].sort();
  const all = await materials(lockOf([...wanted, ...Object.keys(optionalDependencies)]));
  writeFileSync(join(directory, "NOTICES.txt"), notices(all));
  writeFileSync(join(directory, "sbom.cdx.json"), await bill(all, { name, version, licence: license }));
  const manifest = {
    name,
    version,
    description,
    license,
    type: "module",
    bin: { anteroom: "tools/anteroom.mjs" },
    engines: { node: ">=20" },
    os: ["linux", "darwin"],
    dependencies: Object.fromEntries(wanted.map((wanted) => [wanted, devDependencies[wanted]])),
    optionalDependencies,
  };
  writeFileSync(join(directory, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  return directory;
}

/** Packs a directory as npm would publish it. @param {string} directory @param {string} [into] */
export function pack(directory, into = PACKAGES) {
  return run("npm", ["pack", "--silent", "--pack-destination", into], { cwd: directory });
}

main(import.meta.url, async () => pack(await assemble()), {
  help: `Usage: npm run package

Makes the npm package anteroom, packed, in build/package/.`,
});
