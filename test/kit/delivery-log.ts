import { spawn } from "node:child_process"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { inject } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { factResult } from "../../src/domain/fact.ts"
import type {
  DeliveryLookup,
  DeliveryQuery,
  DeliveryRow,
  LoggedDeliveries,
  ProjectionStatus
} from "../../src/projection/delivery-log.ts"
import type { ProjectionOptions } from "../../src/projection/projection.ts"
import type { Installation } from "./engine.ts"
import { eventually } from "./engine.ts"
import { storeDirectorySync } from "./store-directory.ts"

/** A directory for the files of a projection. */
export const directory = Effect.acquireRelease(
  Effect.sync(() => storeDirectorySync("petrel-projection-")),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

export const optionsOf = (place: Installation, data: string): ProjectionOptions => ({
  broker: { url: place.url, prefix: place.prefix, eventRoot: place.eventRoot },
  data,
  keepMs: 1e12,
  maxBytes: 1e9
})

/** Appends facts to the history, in their order unless several are appended at once. */
export const store = Effect.fnUntraced(function* (
  facts: ReadonlyArray<Fact>,
  concurrency: number = 1
) {
  const { names, publish } = yield* Broker
  const append = (fact: Fact, index: number) => {
    const { endpoint, kind, tenant } = fact
    const subject = names.subjects.fact(tenant, endpoint, factResult(kind), kind)
    return publish(subject, JSON.stringify(fact), [["Nats-Msg-Id", `f${index}.${Math.random()}`]])
  }
  yield* Effect.forEach(facts, append, { concurrency, discard: true })
})

/** Waits until a projection has seen all that is in the history. */
export const caughtUp = <E, R>(status: Effect.Effect<ProjectionStatus, E, R>) =>
  Effect.gen(function* () {
    const { names, streamInfo } = yield* Broker
    const { state } = yield* streamInfo("look", names.history)
    yield* eventually(Effect.option(status), (known) =>
      known._tag === "Some" ? known.value.position >= state.last_seq : false
    )
  })

/** Returns all rows of a query, page by page. */
export const walk = <R>(
  find: (
    query: DeliveryQuery
  ) => Effect.Effect<{ deliveries: ReadonlyArray<DeliveryRow>; cursor: string | null }, unknown, R>,
  query: DeliveryQuery = {}
) =>
  Effect.gen(function* () {
    const rows: Array<DeliveryRow> = []
    let cursor: string | null = null
    do {
      const page: { deliveries: ReadonlyArray<DeliveryRow>; cursor: string | null } = yield* find({
        ...query,
        limit: 200,
        ...(cursor === null ? {} : { cursor })
      })
      rows.push(...page.deliveries)
      cursor = page.cursor
    } while (cursor !== null)
    return rows
  })

/**
 * Returns the rounds of all events that facts are about, as whoever looks each of them up gets them.
 *
 * @param get looks one up: in a log of this process, or as `getRemotely` in that of another one.
 */
export const lookedUp = <E, R>(
  get: (lookup: DeliveryLookup) => Effect.Effect<LoggedDeliveries, E, R>,
  facts: ReadonlyArray<Fact>
) =>
  Effect.map(
    Effect.forEach(new Set(facts.flatMap(({ event }) => event ?? [])), (event) => get({ event }), {
      concurrency: 8
    }),
    (found) => found.flatMap(({ rounds }) => rounds)
  )

/** A projection in a process of its own, which is killed at the end at the latest. */
export const projecting = (options: ProjectionOptions, within: ReadonlyArray<string> = []) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const program = join(inject("programs"), "projecting.js")
      const [command = "", ...args] = [...within, process.execPath, program]
      const child = spawn(command, [...args, JSON.stringify(options)], { stdio: "ignore" })
      const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()))
      return {
        /** It stops as it is, or goes on: its connections stay open. */
        pause: Effect.sync(() => child.kill("SIGSTOP")),
        resume: Effect.sync(() => child.kill("SIGCONT")),
        kill9: Effect.promise(() => {
          child.kill("SIGKILL")
          return ended
        })
      }
    }),
    ({ kill9 }) => kill9
  )
