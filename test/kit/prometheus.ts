import { execFileSync, spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

/** The files that users take. */
export const deployed = join(import.meta.dirname, "../../deploy")

const found = (program: string): boolean => {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

/** Why tests with Prometheus cannot run on this machine; undefined if they can. */
export const withoutPrometheus =
  found("promtool") && found("prometheus")
    ? undefined
    : "prometheus and promtool are not installed here: apt-get install prometheus"

/** Runs promtool. Returns its exit code and what it prints. */
export const promtool = (args: ReadonlyArray<string>, input = "") => {
  try {
    const text = execFileSync("promtool", args, { input, encoding: "utf8", stdio: "pipe" })
    return { code: 0, text }
  } catch (error) {
    const { status, stderr, stdout } = error as { status: number; stderr: string; stdout: string }
    return { code: status, text: `${stdout}${stderr}` }
  }
}

/** A port that nothing listens at. */
const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** One series of a result. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [at: number, value: string]
}

interface Answer {
  readonly status: string
  readonly error?: string
  readonly data: { readonly result: ReadonlyArray<Series> }
}

export interface Prometheus {
  /** Asks for the value of an expression now. */
  readonly query: (expression: string) => Effect.Effect<ReadonlyArray<Series>>
}

/** The configuration that users take, with these targets, and a second instead of 15. */
const configuration = (workers: ReadonlyArray<string>, consoles: ReadonlyArray<string>) =>
  readFileSync(join(deployed, "prometheus/prometheus.yml"), "utf8")
    .replaceAll("interval: 15s", "interval: 1s")
    .replace("scrape_timeout: 10s", "scrape_timeout: 1s")
    .replace('["127.0.0.1:9464"]', JSON.stringify(workers))
    .replace('["127.0.0.1:4280"]', JSON.stringify(consoles))
    .replaceAll(/- (petrel\.\w+\.yml)/g, (_, file) => `- ${join(deployed, "prometheus", file)}`)

/** Runs Prometheus with the deployed rules until the scope closes. */
export const startPrometheus = Effect.fnUntraced(function* (
  workers: ReadonlyArray<string>,
  consoles: ReadonlyArray<string>
) {
  const port = yield* freePort
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "petrel-prometheus-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const file = join(directory, "prometheus.yml")
  writeFileSync(file, configuration(workers, consoles))
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(
        "prometheus",
        [
          `--config.file=${file}`,
          `--storage.tsdb.path=${join(directory, "data")}`,
          `--web.listen-address=127.0.0.1:${port}`
        ],
        { stdio: "ignore" }
      )
    ),
    (child) =>
      Effect.callback<void>((resume) => {
        child.once("exit", () => resume(Effect.void))
        child.kill("SIGKILL")
      })
  )
  const query: Prometheus["query"] = (expression) =>
    Effect.promise(async () => {
      const asked = new URLSearchParams({ query: expression })
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/query?${asked}`).catch(
        () => null
      )
      if (response === null || response.status === 503) return []
      const answer: Answer = JSON.parse(await response.text())
      if (answer.status !== "success") throw new Error(`${expression}: ${answer.error}`)
      return answer.data.result
    })
  const prometheus: Prometheus = { query }
  return prometheus
})
