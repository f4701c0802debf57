import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, beforeAll, vi } from "vitest"
import { writeThroughKills } from "../kit/outbox-kills.ts"
import { type PostgresServer, startPostgres, withoutPostgres } from "../kit/postgres-server.ts"
import { outage } from "../kit/scenario.ts"

/** Fewer of them for a short run. */
const rows = Number(process.env.PETREL_TEST_ROWS ?? 100_000)

vi.setConfig({ testTimeout: 30 * 60_000 })

const quantile = (sorted: ReadonlyArray<number>, share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]

describe.skipIf(withoutPostgres !== undefined)("an outbox in PostgreSQL", () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres({ shared_buffers: "128MB" })
  })
  afterAll(() => server.stop())

  outage(
    `publishes ${rows} rows once each (PETREL_TEST_ROWS) through twelve kills`,
    (place, broker) =>
      Effect.gen(function* () {
        const kinds = ["relay", "broker", "relay", "database"] as const
        const began = Date.now()
        const took = yield* writeThroughKills(place, broker, server, {
          ...{ rows, perTransaction: 100 },
          kills: [...kinds, ...kinds, ...kinds]
        })
        const sorted = took.toSorted((a, b) => a - b)
        console.log(
          `${rows} rows in ${Date.now() - began} ms; commit to stream: p50 ${quantile(sorted, 0.5)} ms, p99 ${quantile(sorted, 0.99)} ms`
        )
        assert.lengthOf(took, rows)
      }),
    { eventBytes: -1, historyBytes: -1 }
  )
})
