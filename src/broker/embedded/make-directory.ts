import { access, mkdir } from "node:fs/promises"
import { dirname } from "node:path"

const codeOf = (error: unknown) =>
  error instanceof Error && "code" in error ? error.code : undefined

/**
 * Creates a directory and its missing parents. Node's own recursive mkdir never ends if the system
 * denies that a parent exists right after its creation, as under /proc.
 */
export const makeDirectory = async (path: string): Promise<void> => {
  try {
    await mkdir(path)
  } catch (error) {
    if (codeOf(error) === "EEXIST") return
    const parent = dirname(path)
    const parentIsThere = await access(parent).then(
      () => true,
      () => false
    )
    if (codeOf(error) !== "ENOENT" || parentIsThere || parent === path) throw error
    await makeDirectory(parent)
    await mkdir(path)
  }
}
