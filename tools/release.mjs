/**
 * `npm run release`: all that a release consists of, in build/release/: the packages `anteroom` and `create-anteroom`, a
 * template that stands alone, notices, the bill of materials, checksums. docs/release.md says what is done with it.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { assemble, lockOf, PACKAGES, pack } from "./package.mjs";
import { Failure, main, ROOT } from "./toolchain.mjs";

const RELEASE = join(ROOT, "build", "release");
const OURS = join(ROOT, "tools", "package");

const text = (...path) => readFileSync(join(ROOT, ...path), "utf8");
const json = (value) => `${JSON.stringify(value, null, 2)}\n`;

/** @returns {string} the version, which Cargo.toml and the changelog must say too */
function version() {
  const { version } = JSON.parse(text("package.json"));
  if (!text("Cargo.toml").includes(`\nversion = "${version}"\n`))
    throw new Failure(`package.json says version ${version}, Cargo.toml another one: let them agree`);
  const changes = text("CHANGELOG.md");
  if (!changes.includes(`\n## ${version}\n`) || changes.includes("\n## Unreleased\n"))
    throw new Failure(`CHANGELOG.md must have a heading "## ${version}", and no part that is unreleased`);
  return version;
}

/** What has no commit cannot be built again. */
function expectCommitted() {
  const changed = execFileSync("git", ["status", "--porcelain"], { cwd: ROOT, encoding: "utf8" });
  if (changed) throw new Failure(`Commit first, or say --draft:\n${changed}`);
}

/** What `npm create anteroom` runs. @param {string} directory @param {string} version */
export function makeCreate(directory, version) {
  mkdirSync(directory, { recursive: true });
  cpSync(join(OURS, "create.mjs"), join(directory, "create.mjs"));
  cpSync(join(ROOT, "LICENSE"), join(directory, "LICENSE"));
  const { license } = JSON.parse(text("package.json"));
  const manifest = {
    name: "create-anteroom",
    version,
    description: "npm create anteroom: a waiting room of your own",
    license,
    type: "module",
    bin: { "create-anteroom": "create.mjs" },
    engines: { node: ">=20" },
    dependencies: { anteroom: version },
  };
  writeFileSync(join(directory, "package.json"), json(manifest));
}

/**
 * A Worker that is compiled, with nothing to build it: for the button "Deploy to Cloudflare" and for C3.
 * @param {string} directory @param {string} version @param {string} made the package's directory
 */
export function makeTemplate(directory, version, made) {
  mkdirSync(join(directory, "build"), { recursive: true });
  for (const name of ["index.js", "index_bg.wasm"])
    cpSync(join(ROOT, "build", name), join(directory, "build", name));
  for (const name of ["LICENSE", "NOTICES.txt"]) cpSync(join(made, name), join(directory, name));
  cpSync(join(OURS, "template", "README.md"), join(directory, "README.md"));
  cpSync(join(OURS, "template", "dev.vars.example"), join(directory, ".dev.vars.example"));
  writeFileSync(join(directory, ".gitignore"), "/node_modules/\n/.wrangler/\n/.dev.vars\n");
  const configuration = text("wrangler.toml")
    .replace(/^\[build\]\n[\s\S]*?\n\n/m, "workers_dev = true\n\n")
    .replace('ORIGIN = ""', 'ORIGIN = "https://example.com"');
  writeFileSync(join(directory, "wrangler.toml"), configuration);
  const { wrangler } = JSON.parse(text("package.json")).devDependencies;
  const manifest = {
    ...JSON.parse(text("tools", "package", "template", "package.json")),
    version,
    devDependencies: { wrangler },
  };
  const { name, license, devDependencies } = manifest;
  const packages = { "": { name, version, license, devDependencies }, ...lockOf(["wrangler"]) };
  writeFileSync(join(directory, "package.json"), json(manifest));
  writeFileSync(
    join(directory, "package-lock.json"),
    json({ name, version, lockfileVersion: 3, requires: true, packages }),
  );
}

/** One line for each file, as `sha256sum --check` reads them. */
function checksums(directory) {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const names = files.map(({ parentPath, name }) => relative(directory, join(parentPath, name))).sort();
  const sum = (name) =>
    createHash("sha256")
      .update(readFileSync(join(directory, name)))
      .digest("hex");
  return names.map((name) => `${sum(name)}  ${name}\n`).join("");
}

main(
  import.meta.url,
  async () => {
    const isDraft = process.argv.includes("--draft");
    const current = isDraft ? JSON.parse(text("package.json")).version : version();
    if (!isDraft) expectCommitted();
    const made = await assemble();
    rmSync(RELEASE, { recursive: true, force: true });
    mkdirSync(RELEASE, { recursive: true });
    await pack(made, RELEASE);
    const create = join(PACKAGES, "create-anteroom");
    rmSync(create, { recursive: true, force: true });
    makeCreate(create, current);
    await pack(create, RELEASE);
    makeTemplate(join(RELEASE, "template"), current, made);
    for (const name of ["NOTICES.txt", "sbom.cdx.json"]) cpSync(join(made, name), join(RELEASE, name));
    writeFileSync(join(RELEASE, "SHA256SUMS"), checksums(RELEASE));
    process.stdout.write(
      `\n${text("build", "release", "SHA256SUMS")}\nIn build/release/. Next: docs/release.md\n`,
    );
  },
  {
    help: `Usage: npm run release [-- --draft]

Makes all that a release consists of, in build/release/. --draft: of what is not committed, too.`,
  },
);
