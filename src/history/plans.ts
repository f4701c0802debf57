import { Effect, Option, Stream } from "effect"
import { Broker } from "../broker/connection.ts"
import { readStream } from "../broker/scan.ts"
import type { EventIdentity } from "../domain/event.ts"
import type { Plan } from "../domain/fact.ts"
import { nobody } from "../domain/token.ts"
import { decodeFact } from "./fact-at.ts"

/** A part of an event's plan where the history tells it. */
export interface ToldPlan extends EventIdentity {
  readonly tenant: string
  readonly plan: Plan
  /** In the history. */
  readonly seq: number
}

/**
 * Shows the plans that are told from a time on, in their order, whichever fact tells them.
 *
 * @param tenant whose; `*` for all.
 * @param fromTime ms since the epoch, of when the broker stored a fact.
 */
export const readPlans = Effect.fnUntraced(function* (
  tenant: string,
  fromTime: number,
  see: (told: ToldPlan) => void
) {
  const { names } = yield* Broker
  yield* readStream({
    stream: names.history,
    subjects: [
      names.subjects.fact(tenant, nobody, "ok", "routed"),
      names.subjects.fact(tenant, "*", "ok", "delivered")
    ],
    fromTime: Math.max(0, fromTime)
  }).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const text = message.string()
        // Most successes tell none.
        if (!text.includes('"plan"')) return
        const fact = Option.getOrUndefined(decodeFact(text))
        const { eventAt, eventSeq, plan } = fact ?? {}
        if (fact === undefined || plan === undefined) return
        if (eventSeq === undefined || eventAt === undefined) return
        see({ tenant: fact.tenant, eventSeq, eventAt, plan, seq: message.seq })
      })
    )
  )
})
