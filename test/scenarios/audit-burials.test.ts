import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import type { Delivery } from "../../src/domain/delivery.ts"
import { deliveryHeaders, untried } from "../../src/domain/delivery.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { Facts } from "../../src/history/facts.ts"
import { eventAt, publishMany } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

let written = 0
const write = (fact: Partial<Fact> & Pick<Fact, "kind">) =>
  Effect.gen(function* () {
    const facts = yield* Facts
    const event = { eventSeq: 1, eventAt: yield* eventAt(1) }
    yield* facts.append(
      { v: 1, at: Date.now(), tenant: "acme", endpoint: "_", ...event, ...fact },
      `burial-${written++}`
    )
  })

/** Stores a dead letter of the first event. */
const bury = Effect.fnUntraced(function* (endpoint: string, round: string) {
  const { names, publisher } = yield* natsClients
  const now = Date.now()
  const delivery: Delivery = {
    ...{ tenant: "acme", endpoint, event: "e-1", eventSeq: 1, type: "paid", round },
    eventAt: yield* eventAt(1),
    ...{ began: now, deadline: now + 60_000, generation: "g", revision: 1 },
    ...{ content: {}, progress: untried }
  }
  const headers = deliveryHeaders(delivery, `letter-${written++}`)
  return yield* publisher.publish(names.subjects.dead("acme", endpoint), "{}", headers)
})

describe("an audit of dead letters", () => {
  scenario("does not take the letter of another endpoint or round for the one that is named", () =>
    Effect.gen(function* () {
      yield* publishMany(1)
      const ids = ["a", "b"]
      const deadline = Date.now() + 60_000
      const endpoints = ids.map((id) => ({ id, generation: "g", revision: 1, deadline }))
      yield* write({ kind: "routed", plan: { part: 0, last: true, endpoints, skipped: [] } })
      yield* write({ kind: "redelivered", endpoint: "b", round: "d9" })
      yield* bury("a", "0")
      yield* bury("b", "0")
      yield* bury("b", "d9")
      const end = { kind: "dead-lettered", attempt: 0, reason: "deadline" } as const
      const told = [
        write({ ...end, endpoint: "a", round: "0", dead: 2 }),
        write({ ...end, endpoint: "b", round: "0", dead: 3 }),
        write({ ...end, endpoint: "b", round: "d9", dead: 1 })
      ]
      yield* Effect.all(told)
      const { judgement } = yield* audit({})
      assert.deepStrictEqual(
        judgement.problems.list
          .map(({ dead, endpoint, kind, round }) => `${kind} ${dead} ${endpoint} ${round}`)
          .sort(),
        [
          "dead-letter-missing 1 b d9",
          "dead-letter-missing 2 a 0",
          "dead-letter-missing 3 b 0",
          "dead-letter-without-fact 1 a 0",
          "dead-letter-without-fact 2 b 0",
          "dead-letter-without-fact 3 b d9"
        ]
      )
    })
  )
})
