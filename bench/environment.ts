/* The environment of a measurement, without which its numbers cannot be interpreted. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { cpus, release, totalmem, type } from "node:os"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { findNatsServer } from "../src/broker/embedded/binary.ts"
import { cores } from "./machine.ts"

const root = fileURLToPath(new URL("..", import.meta.url))

const git = (...args: ReadonlyArray<string>): string | undefined => {
  try {
    const stdio = ["ignore", "pipe", "ignore"] as const
    return execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: [...stdio] }).trim()
  } catch {
    return undefined
  }
}

/** Returns the commit, and whether sources differ from it; "unknown" outside of a repository. */
const revision = (): string => {
  const commit = git("rev-parse", "--short", "HEAD")
  if (commit === undefined) return "unknown"
  return git("status", "--porcelain", "--", "src", "bench/*.ts") === ""
    ? commit
    : `${commit}, changed`
}

const versionOf = (name: string): string => {
  const text = readFileSync(`${root}/node_modules/${name}/package.json`, "utf8")
  return String(JSON.parse(text).version)
}

export interface Environment {
  readonly petrel: string
  /** What was measured. Results of before it could be chosen were from the sources. */
  readonly from: "sources" | "package"
  readonly node: string
  readonly natsServer: string
  readonly undici: string
  readonly system: string
  readonly cpu: string
  /** Cores available to this process. All processes of the benchmark share them. */
  readonly cores: number
  readonly memoryGiB: number
}

export const environment = Effect.fnUntraced(function* (from: Environment["from"]) {
  const { version } = yield* findNatsServer()
  const found: Environment = {
    petrel: revision(),
    from,
    node: process.versions.node,
    natsServer: version,
    undici: versionOf("undici"),
    system: `${type()} ${release()}`,
    cpu: cpus()[0]?.model ?? "unknown",
    cores,
    memoryGiB: Math.round(totalmem() / 2 ** 30)
  }
  return found
})
