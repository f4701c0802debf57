import { execFile } from "node:child_process"
import { globSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { toolsFolderOf } from "./tools-folder.ts"

const { install, path } = toolsFolderOf("runtimes")

/** A program that runs modules. */
export interface Runtime {
  readonly name: string
  readonly command: string
  /** What comes before the module. */
  readonly args: ReadonlyArray<string>
}

/** The Node that runs the tests. */
export const thisNode: Runtime = { name: "this Node", command: process.execPath, args: [] }

const commandIn = (pattern: string): string => {
  const [found] = globSync(pattern, { cwd: join(path, "node_modules") })
  if (found === undefined) throw new Error(`npm ci in ${path} made no ${pattern}`)
  return join(path, "node_modules", found)
}

/** Installs the other runtimes, once, and returns them. */
export const otherRuntimes = async (): Promise<ReadonlyArray<Runtime>> => {
  await install()
  return [
    { name: "Node 20", command: commandIn("node-{linux,darwin,bin}-*/bin/node"), args: [] },
    { name: "Node 22", command: commandIn("node-22-*/bin/node"), args: [] },
    { name: "Bun", command: commandIn("@oven/*/bin/bun"), args: ["run"] },
    {
      name: "Deno",
      command: commandIn("@deno/*/deno"),
      args: ["run", "--no-lock", "--allow-net", "--allow-read", "--allow-env", "--allow-sys"]
    }
  ]
}

/** Runs a module that prints JSON at last. Returns that. */
export const runModule = async (
  { args, command }: Runtime,
  cwd: string,
  ...rest: ReadonlyArray<string>
): Promise<unknown> => {
  const { stdout } = await promisify(execFile)(command, [...args, ...rest], {
    cwd,
    timeout: 120_000
  })
  return JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "")
}
