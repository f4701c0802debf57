import { createRequire, syncBuiltinESMExports } from "node:module"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { inject } from "vitest"

/*
 * Starts the threads of the sources from the bundle instead. Node strips the types of each module
 * that a thread loads: a delivery log took 2 s of CPU to start its two threads, and takes 0.3 s.
 */

const threads: typeof import("node:worker_threads") = createRequire(import.meta.url)(
  "node:worker_threads"
)

const sources = join(import.meta.dirname, "../../src/")

const bundledOf = (script: string | URL): string | URL => {
  const path = script instanceof URL ? fileURLToPath(script) : script
  return path.startsWith(sources)
    ? join(inject("programs"), basename(path).replace(/\.ts$/, ".js"))
    : script
}

class BundledWorker extends threads.Worker {
  constructor(...[script, options]: ConstructorParameters<typeof threads.Worker>) {
    super(bundledOf(script), options)
  }
}

// The files of a process share it, and this runs before each of them.
if (threads.Worker.name !== BundledWorker.name) {
  threads.Worker = BundledWorker
  syncBuiltinESMExports()
}
