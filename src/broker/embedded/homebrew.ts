import { join } from "node:path"
import { Effect } from "effect"
import type { Source } from "./source.ts"
import { run } from "./source.ts"

const installTimeoutMs = 600_000
const prefixTimeoutMs = 30_000

/**
 * Homebrew's formula, if Homebrew is installed. It is installed for the user, like a manual `brew
 * install`.
 */
export const homebrewFormula = (
  platform: string = process.platform,
  env: NodeJS.ProcessEnv = process.env
): Source => ({
  name: "Homebrew",
  obtain: Effect.fnUntraced(function* (directory, progress) {
    if (platform !== "darwin") return undefined
    const inPath = { cwd: directory, env }
    const has = yield* Effect.exit(run("brew", ["--version"], { ...inPath, timeoutMs: 30_000 }))
    if (has._tag === "Failure") return undefined
    progress("installing nats-server with Homebrew")
    yield* run("brew", ["install", "--quiet", "nats-server"], {
      ...inPath,
      timeoutMs: installTimeoutMs,
      onLine: (line) => progress(`  ${line}`)
    })
    const prefix = yield* run("brew", ["--prefix", "nats-server"], {
      ...inPath,
      timeoutMs: prefixTimeoutMs
    })
    return join(prefix.trim(), "bin/nats-server")
  })
})
