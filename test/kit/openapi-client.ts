import { writeFile } from "node:fs/promises"
import { Effect } from "effect"
import { apiDocument } from "../../src/api/document.ts"
import { installTools, inTools, toolsFolder } from "./openapi-tools.ts"

/**
 * Makes a client from the API's document and checks its types.
 *
 * @returns where the client's module is.
 */
export const makeClient = Effect.promise(async () => {
  await installTools()
  await writeFile(`${toolsFolder}petrel.json`, JSON.stringify(apiDocument()))
  const node = (...args: ReadonlyArray<string>) => inTools(process.execPath, ...args)
  await node("node_modules/openapi-typescript/bin/cli.js", "petrel.json", "-o", "petrel.d.ts")
  await node("node_modules/typescript/bin/tsc", "-p", ".")
  return `${toolsFolder}client.ts`
})
