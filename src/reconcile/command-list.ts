import { spawn } from "node:child_process"
import type { Readable } from "node:stream"
import { Effect } from "effect"
import { momentAt, textAt, valueAt } from "../providers/body.ts"
import { carriedHeaders, isoTime, jsonHeaders, type Listed } from "../providers/listings/listing.ts"
import { ApiFailed } from "./api.ts"
import type { ListingApi } from "./walk.ts"

/** Lines that are compared at a time. */
const perPage = 500
/** Characters of a line: an event with its body is one. */
const maxLineChars = 4 * 1024 * 1024
/** Characters of what a command says on stderr that are kept. */
const maxSaidChars = 500

/**
 * Reads a line of a command's list: an id, or an object with `id` and, where it is known, `at`,
 * `type`, `body` and `headers`. Returns undefined for an empty line, and a sentence for a wrong one.
 */
export const readLine = (line: string): Listed | string | undefined => {
  const text = line.trim()
  if (text === "") return undefined
  if (!text.startsWith("{")) return { id: text }
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return "a line that begins with { is not JSON"
  }
  const id = textAt(json, "id")
  if (id === undefined) return 'a line of JSON has no "id"'
  const body = valueAt(json, "body")
  const headers = { ...jsonHeaders, ...carriedHeaders(valueAt(json, "headers")) }
  return {
    id,
    at: momentAt(json, "ms", "at"),
    type: textAt(json, "type"),
    ...(body === undefined ? {} : { carried: { headers, body: Buffer.from(JSON.stringify(body)) } })
  }
}

/** Yields the lines of a text, and of one that is too long what has come of it as the last. */
async function* linesOf(text: Readable): AsyncGenerator<string, void> {
  let rest = ""
  for await (const chunk of text.setEncoding("utf8")) {
    const lines = `${rest}${chunk}`.split("\n")
    rest = lines.pop() ?? ""
    yield* lines
    if (rest.length > maxLineChars) break
  }
  if (rest !== "") yield rest
}

/** Starts a command of the shell; it ends with the scope. */
const started = (command: string, env: NodeJS.ProcessEnv) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(command, { shell: true, env, stdio: ["ignore", "pipe", "pipe"] })
      let said = ""
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        said = (said + text).slice(-maxSaidChars)
      })
      const ended = new Promise<string | undefined>((resolve) => {
        child.on("error", ({ message }) => resolve(message))
        child.on("close", (code, signal) => {
          const last = said.trim().split("\n").at(-1) ?? ""
          const how = signal === null ? `with ${code}` : `by ${signal}`
          resolve(code === 0 ? undefined : `it ended ${how}${last === "" ? "" : `: ${last}`}`)
        })
      })
      return { child, ended }
    }),
    ({ child }) => Effect.sync(() => child.exitCode === null && child.kill())
  )

/**
 * The list that a command prints, a line for each event. The command is told what is asked for by
 * PETREL_SINCE and PETREL_UNTIL, as ISO 8601 times. A command that fails has listed nothing that can
 * be relied on.
 */
export const commandList = (
  command: string,
  { since, until }: { readonly since: number; readonly until: number }
): ListingApi => ({
  types: Effect.undefined,
  obtain: ({ carried }) =>
    Effect.succeed(
      carried === undefined
        ? { as: "not-had", why: "the command lists it, and prints no body" }
        : { as: "carried", carried }
    ),
  walk: (take) =>
    Effect.gen(function* () {
      const env = {
        ...process.env,
        PETREL_SINCE: isoTime(since),
        PETREL_UNTIL: isoTime(until)
      }
      const { child, ended } = yield* started(command, env)
      const lines = linesOf(child.stdout)
      const failed = (why: string) => new ApiFailed({ message: `the command failed: ${why}` })
      while (true) {
        const page: Array<Listed> = []
        let isDone = false
        while (page.length < perPage && !isDone) {
          const { done, value } = yield* Effect.promise(() => lines.next())
          if (done === true || value === undefined) {
            isDone = true
            break
          }
          if (value.length > maxLineChars)
            return yield* failed(`a line has more than ${maxLineChars} characters`)
          const read = readLine(value)
          if (typeof read === "string") return yield* failed(read)
          if (read !== undefined) page.push(read)
        }
        yield* take(page)
        if (isDone) break
      }
      const problem = yield* Effect.promise(() => ended)
      if (problem !== undefined) return yield* failed(problem)
    }).pipe(Effect.scoped)
})
