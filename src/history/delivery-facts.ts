import { Effect, Option } from "effect"
import { Broker } from "../broker/broker.ts"
import { readThrough } from "../broker/bulk-read.ts"
import type { StoredFact } from "./read.ts"
import { concerning, parseFact } from "./read.ts"

/**
 * Reads all facts about an event and an endpoint, including the plan, in the order of the history.
 * The history has no index by event, so this scans all facts of the tenant. One pass with one
 * filter, and parsing only texts that name the event, keep it affordable.
 *
 * @param event its id, or `evt_` + its sequence, which works for every event.
 */
export const readDeliveryFacts = Effect.fnUntraced(function* (
  tenant: string,
  endpoint: string,
  event: string
) {
  const { names, streamInfo } = yield* Broker
  const { fact } = names.subjects
  const { state } = yield* streamInfo("look at the history", names.history)
  const { isAbout, mayBeAbout } = concerning(event)
  const found: Array<StoredFact> = []
  yield* readThrough(
    {
      stream: names.history,
      subjects: [fact(tenant, "*", "*", "*")],
      from: state.first_seq,
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
