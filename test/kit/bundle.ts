import { createHash } from "node:crypto"
import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { rolldown } from "rolldown"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    /** Directory of the programs that tests start as processes. */
    readonly programs: string
  }
}

const root = join(import.meta.dirname, "../..")
/** A bundle looks for its compile cache two levels up, in node_modules/.cache. */
const home = join(root, "node_modules/.cache/petrel-programs")
/** How long bundles of earlier source states are kept, ms: another run may still start them. */
const kept = 60 * 60_000

/**
 * Bundles the programs that tests start as processes. Tests start hundreds of them, and without
 * bundling a program takes 0.4 s of CPU to start, most of it for loading 300 modules. A bundle
 * takes 0.13 s.
 */
export default async ({ provide }: TestProject): Promise<void> => {
  const bundle = await rolldown({
    input: {
      petrel: join(root, "src/cli/main.ts"),
      "writer-thread": join(root, "src/projection/writer-thread.ts"),
      "query-thread": join(root, "src/projection/query-thread.ts"),
      "audit-thread": join(root, "src/cli/commands/console/audit-thread.ts"),
      "crashing-worker": join(root, "test/kit/crashing-worker.ts")
    },
    platform: "node"
  })
  const { output } = await bundle.generate({ format: "esm" })
  await bundle.close()
  const hash = createHash("sha256")
  for (const piece of output) hash.update(piece.type === "chunk" ? piece.code : piece.source)
  const name = hash.digest("hex").slice(0, 16)
  const made = join(home, name)
  if (!(await exists(made))) {
    const making = `${made}.${process.pid}`
    await mkdir(making, { recursive: true })
    for (const piece of output)
      await writeFile(
        join(making, piece.fileName),
        piece.type === "chunk" ? piece.code : piece.source
      )
    // Another run may have finished first; its bundle is identical.
    await rename(making, made).catch(() => rm(making, { recursive: true }))
  }
  await removeOld(name)
  provide("programs", made)
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false
  )

const removeOld = async (present: string): Promise<void> => {
  for (const name of await readdir(home)) {
    const { mtimeMs } = await stat(join(home, name))
    if (name !== present && Date.now() - mtimeMs > kept)
      await rm(join(home, name), { recursive: true, force: true })
  }
}
