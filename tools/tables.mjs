/**
 * The tables that the description of the API is made of: a room's fields, and the operators' endpoints. Rust has them
 * (`src/config/fields.rs`, `src/operator/access.rs`); the command `anteroom-check` writes them down.
 */
import { closeSync, mkdirSync, openSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { environment, main, NIGHTLY, ROOT, run } from "./toolchain.mjs";

const TABLES = join(ROOT, "build", "tables.json");

/** Writes them into `build/`, by the toolchain that building the Worker needs anyway. */
export async function writeTables() {
  mkdirSync(dirname(TABLES), { recursive: true });
  // Whoever reads it meanwhile reads a whole one.
  const part = `${TABLES}.part`;
  const file = openSync(part, "w");
  try {
    await run(
      "cargo",
      ["run", "-q", "--profile", "tables", "-p", "anteroom-check", "--", "--fields", "--json"],
      {
        cwd: ROOT,
        env: environment({ RUSTUP_TOOLCHAIN: NIGHTLY }),
        stdio: ["ignore", file, "inherit"],
        failure: "The table of fields cannot be written: see above",
      },
    );
  } finally {
    closeSync(file);
  }
  renameSync(part, TABLES);
}

main(import.meta.url, writeTables);
