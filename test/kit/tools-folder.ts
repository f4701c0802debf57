import { execFile } from "node:child_process"
import { copyFile, mkdtemp, readFile, rename, rm } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

interface Package {
  readonly version?: string
  readonly os?: string | ReadonlyArray<string>
  readonly cpu?: string | ReadonlyArray<string>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

interface Lock {
  readonly packages: Readonly<Record<string, Package | undefined>>
}

/**
 * A folder of tools/ that has packages of its own.
 *
 * @param name such as `openapi`.
 */
export const toolsFolderOf = (name: string) => {
  const path = fileURLToPath(new URL(`../../tools/${name}/`, import.meta.url))

  const readLock = async (file: string): Promise<Lock> =>
    JSON.parse(await readFile(`${path}${file}`, "utf8").catch(() => '{"packages":{}}'))

  const isInstalled = async (): Promise<boolean> => {
    const [wanted, found] = [
      await readLock("package-lock.json"),
      await readLock("node_modules/.package-lock.json")
    ]
    const { dependencies, devDependencies, optionalDependencies } = wanted.packages[""] ?? {}
    const forThisMachine = Object.keys(optionalDependencies ?? {}).filter((name) => {
      const { cpu = process.arch, os = process.platform } =
        wanted.packages[`node_modules/${name}`] ?? {}
      return [cpu].flat().includes(process.arch) && [os].flat().includes(process.platform)
    })
    const names = [...Object.keys({ ...dependencies, ...devDependencies }), ...forThisMachine]
    return names.every((name) => {
      const { version } = found.packages[`node_modules/${name}`] ?? {}
      return version !== undefined && version === wanted.packages[`node_modules/${name}`]?.version
    })
  }

  /** Installs the packages, once. Several processes may do so at the same time: the first one wins. */
  const install = async (): Promise<void> => {
    if (await isInstalled()) return
    const folder = await mkdtemp(`${path}installing-`)
    try {
      for (const file of ["package.json", "package-lock.json", ".npmrc"])
        await copyFile(`${path}${file}`, `${folder}/${file}`)
      await promisify(execFile)("npm", ["ci"], { cwd: folder })
      if (await isInstalled()) return
      await rm(`${path}node_modules`, { recursive: true, force: true })
      await rename(`${folder}/node_modules`, `${path}node_modules`).catch(() => undefined)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  return { path, install }
}
