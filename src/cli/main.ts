#!/usr/bin/env node
import module from "node:module"
import { dirname, join } from "node:path"

/* An older Node has to get as far as the sentence below: everything else is imported after it. */

/** What undici needs; it also has node:sqlite without a flag. */
const oldestNode = [22, 19] as const

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
const isOlder = major < oldestNode[0] || (major === oldestNode[0] && minor < oldestNode[1])

if (isOlder) {
  process.stderr.write(
    `petrel: Node ${oldestNode.join(".")} or newer is needed, and this is ${process.versions.node}: install one from https://nodejs.org\n`
  )
  process.exitCode = 1
} else {
  // Within the package, so that only users who can write the code can write its cache. Threads look
  // for it in the environment.
  const manifest = module.findPackageJSON(import.meta.url)
  if (manifest !== undefined) {
    process.env.NODE_COMPILE_CACHE ??= join(dirname(manifest), "node_modules/.cache/petrel")
    module.enableCompileCache()
  }
  const { boundProcess } = await import("./memory.ts")
  boundProcess()
  const { run } = await import("./run.ts")
  run()
}
