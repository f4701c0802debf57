import { existsSync, mkdirSync } from "node:fs"
import { dirname, resolve } from "node:path"

const isThere = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "EEXIST"

/**
 * Creates a directory and its missing parents. Node's own recursive mkdir never returns where a
 * parent is there and can hold no directory, as under /proc, and its thread cannot even be ended.
 *
 * @param mode permissions of what is created. (Default: as the process creates directories)
 * @throws an error of the file system.
 */
export const makeDirectory = (directory: string, mode?: number): void => {
  const missing: Array<string> = []
  for (let at = resolve(directory); !existsSync(at); at = dirname(at)) missing.unshift(at)
  for (const one of missing)
    try {
      mkdirSync(one, { mode })
    } catch (error) {
      // Another process was faster.
      if (!isThere(error)) throw error
    }
}
