import { createHash } from "node:crypto"
import { readdir, rename, rm, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { bundled, bundledAlone, writeBundle } from "../../build/bundle.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** Directory of the programs that tests start as processes. */
    readonly programs: string
  }
}

const root = join(import.meta.dirname, "../..")
const home = join(root, "node_modules/.cache/petrel-programs")
/** How long bundles of earlier source states are kept, ms: another run may still start them. */
const kept = 60 * 60_000

/**
 * Bundles the programs that tests start as processes, and the threads (`bundled-threads.ts`). Tests
 * start hundreds of them, and without bundling each takes 0.4 to 1 s of CPU to start, most of it for
 * loading 300 modules. A bundle takes 0.13 s, and the worker that tests kill most often is one file:
 * its hundred chunks were a quarter of what it took to start.
 */
export default async ({ provide }: TestProject): Promise<void> => {
  const output = [
    ...(await bundled({ more: { projecting: "test/kit/projecting.ts" } })),
    ...(await bundledAlone("crashing-worker", "test/kit/crashing-worker.ts"))
  ]
  const hash = createHash("sha256")
  for (const piece of output) hash.update(piece.type === "chunk" ? piece.code : piece.source)
  const name = hash.digest("hex").slice(0, 16)
  const made = join(home, name)
  if (!(await exists(made))) {
    const making = `${made}.${process.pid}`
    await writeBundle(output, making)
    // Without it, Node parses each file once more to see whether it is a module.
    await writeFile(join(making, "package.json"), '{"type":"module"}')
    // Another run may have finished first; its bundle is identical.
    await rename(making, made).catch(() => rm(making, { recursive: true }))
  }
  await removeOld(name)
  provide("programs", made)
  // For the processes of tests, what they load of packages, and the threads and processes that they
  // start. It goes with the bundle.
  process.env.NODE_COMPILE_CACHE ??= join(made, "compiled")
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false
  )

const removeOld = async (present: string): Promise<void> => {
  for (const name of await readdir(home)) {
    // Another run renames what it makes.
    const found = await stat(join(home, name)).catch(() => undefined)
    if (name !== present && found !== undefined && Date.now() - found.mtimeMs > kept)
      await rm(join(home, name), { recursive: true, force: true })
  }
}
