import { Clock, Effect } from "effect"
import type { Fact } from "../../src/domain/fact.ts"
import { Facts } from "../../src/history/facts.ts"

/** Tells of a round as a watching audit does that has found it nowhere. */
export const tellMissing = (
  of: Pick<Fact, "endpoint" | "event" | "eventAt" | "eventSeq" | "round">
) =>
  Effect.gen(function* () {
    const { append } = yield* Facts
    const { endpoint, event, eventAt, eventSeq, round } = of
    const fact: Fact = {
      ...{ v: 1, kind: "missing", at: yield* Clock.currentTimeMillis, tenant: "acme", endpoint },
      ...{ event, eventAt, eventSeq, delivery: `${event}.${endpoint}`, round },
      ...{ reason: "its event has been stored for long", worker: "audit" }
    }
    return yield* append(fact, `missing.${eventSeq}.${endpoint}.${round}`)
  })
