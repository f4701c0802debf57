/*
 * `npm run fuzz`: drives every operation of the API with many inputs, made by Petrel's own generator
 * and by schemathesis, and compares each answer with the OpenAPI document. Each group of
 * operations has an installation of its own; the two programs run at the same time.
 */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { readCommandOptions } from "./kit/command-options.ts"

const help = `Usage: npm run fuzz -- [--inputs 300] [--mutations 1000] [--seed 20261123]

  --inputs      of each operation, by each of the two programs
  --mutations   of all operations together: inputs that are wrong in one way
  --seed        the same seed makes the same inputs
`

const values = readCommandOptions("fuzz", {
  help: { type: "boolean", short: "h", default: false },
  inputs: { type: "string", default: "300" },
  mutations: { type: "string", default: "1000" },
  seed: { type: "string", default: "20261123" }
})

const root = join(import.meta.dirname, "..")
const tools = join(root, "tools/openapi")
const venv = join(tools, ".venv")
const program = join(venv, "bin/schemathesis")

const run = (command: string, args: ReadonlyArray<string>): boolean =>
  spawnSync(command, args, { cwd: tools, stdio: ["ignore", "ignore", "inherit"] }).status === 0

/** Installs schemathesis, once. Returns false where it cannot be had. */
const hasSchemathesis = (): boolean =>
  existsSync(program) ||
  (run("python3", ["-m", "venv", venv]) &&
    run(join(venv, "bin/pip"), ["install", "--quiet", "-r", "requirements.txt"]))

const main = (): number => {
  if (values.help) {
    process.stdout.write(help)
    return 0
  }
  if (!hasSchemathesis()) {
    process.stderr.write(
      "fuzz: schemathesis is not installed; with python3, its venv and a Python package index, `python3 -m venv tools/openapi/.venv && tools/openapi/.venv/bin/pip install -r tools/openapi/requirements.txt` installs it.\n"
    )
    return 1
  }
  const { status } = spawnSync(
    process.execPath,
    [
      ...[join(root, "node_modules/vitest/vitest.mjs"), "run", "--maxWorkers=2"],
      ...["test/scenarios/api-driven.test.ts", "test/scenarios/api-schemathesis.test.ts"]
    ],
    {
      cwd: root,
      stdio: "inherit",
      env: {
        ...process.env,
        PETREL_FUZZ_INPUTS: values.inputs,
        PETREL_FUZZ_MUTATIONS: values.mutations,
        PETREL_FUZZ_SEED: values.seed,
        PETREL_SCHEMATHESIS: program
      }
    }
  )
  return status ?? 1
}

process.exitCode = main()
