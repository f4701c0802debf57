import { Effect, Option } from "effect"
import { Broker } from "../broker/connection.ts"
import { readThrough } from "./audit/reading.ts"
import type { StoredFact } from "./read.ts"
import { concerning, parseFact } from "./read.ts"

/**
 * What the history tells of an event for an endpoint, its plan included, in its order. The history
 * knows no events, so all facts of the tenant are looked through; what makes that bearable is to
 * read them in one pass by one filter, and only those as facts that name the event.
 *
 * @param event its id, or `evt_` + its sequence whatever its id.
 */
export const readDeliveryFacts = Effect.fnUntraced(function* (
  tenant: string,
  endpoint: string,
  event: string
) {
  const { ask, jsm, names } = yield* Broker
  const { fact } = names.subjects
  const { state } = yield* ask("look at the history", () => jsm.streams.info(names.history))
  const { isAbout, mayBeAbout } = concerning(event)
  const found: Array<StoredFact> = []
  yield* readThrough(
    {
      stream: names.history,
      subjects: [fact(tenant, "*", "*", "*")],
      from: Math.max(1, state.first_seq),
      to: state.last_seq
    },
    ({ message, seq }) => {
      const text = message.string()
      if (!mayBeAbout(text)) return
      const stored = Option.getOrUndefined(parseFact(text, seq))
      if (stored === undefined || !isAbout(stored.fact)) return
      if (stored.fact.endpoint === endpoint || stored.fact.plan !== undefined) found.push(stored)
    }
  )
  return found
})
