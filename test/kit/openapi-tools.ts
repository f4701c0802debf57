import { execFile } from "node:child_process"
import { copyFile, mkdtemp, readFile, rename, rm } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

/**
 * The folder of what users of the API drive it with. It has packages of its own, since generators of
 * clients need TypeScript 5.
 */
export const toolsFolder = fileURLToPath(new URL("../../tools/openapi/", import.meta.url))

/** Runs a command there. */
export const inTools = (command: string, ...args: ReadonlyArray<string>) =>
  promisify(execFile)(command, args, { cwd: toolsFolder })

interface Package {
  readonly version?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

interface Lock {
  readonly packages: Readonly<Record<string, Package | undefined>>
}

const readLock = async (path: string): Promise<Lock> =>
  JSON.parse(await readFile(`${toolsFolder}${path}`, "utf8").catch(() => '{"packages":{}}'))

const isInstalled = async (): Promise<boolean> => {
  const [wanted, found] = [
    await readLock("package-lock.json"),
    await readLock("node_modules/.package-lock.json")
  ]
  const { dependencies, devDependencies } = wanted.packages[""] ?? {}
  return Object.keys({ ...dependencies, ...devDependencies }).every((name) => {
    const { version } = found.packages[`node_modules/${name}`] ?? {}
    return version !== undefined && version === wanted.packages[`node_modules/${name}`]?.version
  })
}

/** Installs the packages, once. Several processes may do so at the same time: the first one wins. */
export const installTools = async (): Promise<void> => {
  if (await isInstalled()) return
  const folder = await mkdtemp(`${toolsFolder}installing-`)
  try {
    for (const file of ["package.json", "package-lock.json", ".npmrc"])
      await copyFile(`${toolsFolder}${file}`, `${folder}/${file}`)
    await promisify(execFile)("npm", ["ci"], { cwd: folder })
    if (await isInstalled()) return
    await rm(`${toolsFolder}node_modules`, { recursive: true, force: true })
    await rename(`${folder}/node_modules`, `${toolsFolder}node_modules`).catch(() => undefined)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Imports a module of the folder. Its types are checked there, by a TypeScript of its own. */
export const importTool = async <Module>(name: string): Promise<Module> => {
  await installTools()
  const path = `${toolsFolder}${name}`
  return import(path) as Promise<Module>
}
