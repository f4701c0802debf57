import { Effect, Fiber, type Scope } from "effect"
import { readTable, usualTable } from "../../src/outbox/table-name.ts"
import { openSession } from "../../src/relay/database.ts"
import { type Driver, findDriver } from "../../src/relay/drivers.ts"
import { RelayFigures } from "../../src/relay/figures.ts"
import { RelayState, relayOutbox } from "../../src/relay/outbox-relay.ts"
import type { PendingRow, Waiting } from "../../src/relay/outbox-table.ts"
import { type Outcome, runRelay } from "../../src/relay/relay.ts"
import { withClient } from "./outbox.ts"

/** Stands in for INTAKE: stores each id once. */
export class FakeIntake {
  readonly stored: Array<PendingRow> = []
  readonly #seqs = new Map<string, number>()
  /** Publishes that were answered with the sequence of an earlier one. */
  repeats = 0

  readonly store = (row: PendingRow): Outcome => {
    const id = `${row.tenant}.${row.eventId}`
    const before = this.#seqs.get(id)
    if (before !== undefined) {
      this.repeats++
      return { kind: "stored", seq: before }
    }
    this.stored.push(row)
    this.#seqs.set(id, this.stored.length)
    return { kind: "stored", seq: this.stored.length }
  }

  /** The ids that it has, in order. */
  get ids(): ReadonlyArray<string> {
    return this.stored.map(({ eventId }) => eventId)
  }
}

export interface RelayingOptions {
  readonly publish: (row: PendingRow) => Effect.Effect<Outcome>
  readonly driver?: Driver["name"]
  readonly keepMs?: number
  readonly pollMs?: number
}

/** What a relay has said of itself. */
export interface Heard {
  readonly states: Array<"connecting" | "standing by" | "publishing">
  readonly problems: Array<string | undefined>
  readonly setAside: Array<string>
  waiting: Waiting | undefined
  removed: number
}

const hour = 60 * 60_000

/** Runs a relay until the scope closes, or `stop` runs. */
export const relaying = (
  url: string,
  { driver = "pg", keepMs = hour, pollMs = 1_000, publish }: RelayingOptions
): Effect.Effect<
  {
    readonly heard: Heard
    readonly stop: Effect.Effect<void>
    readonly ended: Effect.Effect<never, Error>
  },
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const table = readTable(usualTable)
    const found = yield* Effect.promise(() => findDriver(import.meta.dirname, [driver]))
    if (found === undefined || table === undefined) return yield* Effect.die("no driver")
    const heard: Heard = { states: [], problems: [], setAside: [], waiting: undefined, removed: 0 }
    const state = (name: Heard["states"][number]) =>
      Effect.sync(() => {
        heard.states.push(name)
      })
    const fiber = yield* runRelay({
      ...{ table, publish, keepMs, pollMs },
      open: (onBroken) => openSession(found, url, onBroken),
      hears: {
        connecting: () => heard.states.push("connecting"),
        standingBy: () => state("standing by"),
        publishing: () => state("publishing"),
        stored: () => undefined,
        setAside: ({ eventId }, why) =>
          Effect.sync(() => {
            heard.setAside.push(`${eventId}: ${why}`)
          }),
        removed: (rows) => {
          heard.removed += rows
        },
        problem: (why) => Effect.sync(() => heard.problems.push(why)),
        waiting: (waiting) =>
          Effect.sync(() => {
            heard.waiting = waiting
          })
      }
    }).pipe(Effect.forkScoped)
    return {
      heard,
      stop: Fiber.interrupt(fiber),
      ended: Fiber.join(fiber)
    }
  })

/** Publishes an outbox to the intake until the scope closes, in this process. */
export const relayHere = (url: string, reportMs?: number) =>
  Effect.gen(function* () {
    const table = readTable(usualTable)
    const driver = yield* Effect.promise(() => findDriver(import.meta.dirname))
    if (driver === undefined || table === undefined) return yield* Effect.die("no driver")
    const options = {
      ...{ name: "here", driver, url, table, keepMs: hour, pollMs: 1_000 },
      ...(reportMs === undefined ? {} : { reportMs })
    }
    const [figures, state] = [new RelayFigures(), new RelayState()]
    const fiber = yield* Effect.forkScoped(
      relayOutbox({ ...options, figures, became: () => Effect.void }, state)
    )
    return { figures, state, stop: Fiber.interrupt(fiber) }
  })

/** How many rows are in each state. */
export const countRows = (url: string) =>
  Effect.promise(() =>
    withClient(url, async (client) => {
      const { rows } = await client.query(
        `select count(*) filter (where published_at is null and set_aside_at is null)::int as pending,
          count(published_at)::int as published,
          count(*) filter (where published_at is null and set_aside_at is not null)::int as "setAside"
        from petrel_outbox`
      )
      return rows[0] as { pending: number; published: number; setAside: number }
    })
  )
