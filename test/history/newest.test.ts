import { assert, describe } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { factResult } from "../../src/domain/fact.ts"
import type { FactQuery } from "../../src/history/read.ts"
import { readFacts, readNewestFacts } from "../../src/history/read.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** More facts than one look back covers. */
const stored = 11_000

/** Every hundredth fact is globex's, the first one is a dead letter. */
const tell = Effect.gen(function* () {
  const { names, publisher } = yield* natsClients
  yield* Effect.forEach(
    Array.from({ length: stored }, (_, index) => index + 1),
    (seq) => {
      const kind = seq === 1 ? "dead-lettered" : "delivered"
      const tenant = seq % 100 === 0 ? "globex" : "acme"
      const fact: Fact = { v: 1, kind, at: seq, tenant, endpoint: "a", event: `e${seq}` }
      const subject = names.subjects.fact(tenant, "a", factResult(kind), kind)
      return publisher.publish(subject, JSON.stringify(fact), [])
    },
    { concurrency: 256, discard: true }
  )
})

const sequences = <E, R>(facts: Stream.Stream<{ readonly seq: number }, E, R>) =>
  Effect.map(Stream.runCollect(facts), (all) => all.map(({ seq }) => seq))

describe("the newest facts", () => {
  scenario("are the last of all that match, in order, however far back they are", () =>
    Effect.gen(function* () {
      yield* tell
      const { names, readMessage } = yield* Broker
      const middle = yield* readMessage("look", names.history, { seq: stored / 2 })
      const at = middle?.time.getTime() ?? 0
      const queries: ReadonlyArray<readonly [query: FactQuery, limit: number]> = [
        [{}, 1],
        [{}, 5_000],
        [{}, 2 * stored],
        [{ tenant: "globex" }, 3],
        [{ tenant: "globex" }, 60],
        [{ kinds: ["dead-lettered"] }, 2],
        [{ event: "e7" }, 1],
        [{ endpoint: { tenant: "acme", id: "b" } }, 1],
        [{ since: 0, until: 1 }, 1],
        [{ since: at }, stored],
        [{ until: at }, 10],
        [{ since: at, until: at, tenant: "acme" }, 5],
        [{ tenant: "globex", endpoint: { tenant: "acme", id: "a" } }, 1]
      ]
      for (const [query, limit] of queries) {
        const all = yield* sequences(readFacts(query))
        const newest = yield* sequences(readNewestFacts(query, limit))
        assert.deepStrictEqual(newest, all.slice(-limit), JSON.stringify(query))
      }
    })
  )
})
