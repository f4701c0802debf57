import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { toolsFolderOf } from "./tools-folder.ts"

/** What users of the API drive it with. Generators of clients need TypeScript 5. */
const { install, path } = toolsFolderOf("openapi")

export const toolsFolder = path
export const installTools = install

/** Runs a command there. */
export const inTools = (command: string, ...args: ReadonlyArray<string>) =>
  promisify(execFile)(command, args, { cwd: toolsFolder })

/** Imports a module of the folder. Its types are checked there, by a TypeScript of its own. */
export const importTool = async <Module>(name: string): Promise<Module> => {
  await installTools()
  return import(`${toolsFolder}${name}`) as Promise<Module>
}
