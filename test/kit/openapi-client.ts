import { execFile } from "node:child_process"
import { access, writeFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
import { apiDocument } from "../../src/api/document.ts"

const folder = fileURLToPath(new URL("../../tools/openapi/", import.meta.url))
const run = promisify(execFile)

const isInstalled = () =>
  access(`${folder}node_modules/.package-lock.json`).then(
    () => true,
    () => false
  )

/**
 * Makes a client from the API's document and checks its types, in a folder of its own: the generator
 * needs TypeScript 5. What it needs is installed once.
 *
 * @returns where the client's module is.
 */
export const makeClient = Effect.promise(async () => {
  if (!(await isInstalled())) await run("npm", ["ci"], { cwd: folder })
  await writeFile(`${folder}petrel.json`, JSON.stringify(apiDocument()))
  const node = (...args: ReadonlyArray<string>) => run(process.execPath, args, { cwd: folder })
  await node("node_modules/openapi-typescript/bin/cli.js", "petrel.json", "-o", "petrel.d.ts")
  await node("node_modules/typescript/bin/tsc", "-p", ".")
  return `${folder}client.ts`
})
