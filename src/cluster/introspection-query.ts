import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { timers } from "../time/timers.ts"
import type {
  IntrospectionAnswer,
  IntrospectionChunk,
  IntrospectionQuery
} from "./introspection.ts"
import { IntrospectionChunk as PartSchema } from "./introspection.ts"

/** How long the owner of a partition may take for its first chunk, ms. */
const answerWithinMs = 1_000
/** How long the owner may take for each further chunk, ms: it is known to be there, and busy. */
const furtherChunkMs = 3_000
/** How long it may take to try a connection, ms: longer than the owner's own limit. */
const connectionMs = 25_000

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(PartSchema))

/**
 * Queries the owner of a partition. Returns undefined if there is no owner or it does not answer,
 * as during a takeover.
 */
export const queryOwner = Effect.fnUntraced(function* (
  partition: number,
  question: Omit<IntrospectionQuery, "v">
) {
  const { listen, names, say, inbox: newInbox } = yield* Broker
  return yield* Effect.callback<IntrospectionAnswer | undefined>((resume) => {
    const inbox = newInbox()
    const parts: Array<IntrospectionChunk> = []
    let timer = timers.after(answerWithinMs, () => end(undefined))
    const unlisten = listen(inbox, (message) => {
      const part = Option.getOrUndefined(decode(message.string()))
      // The broker answers with an empty message if nobody listens. An answer with a missing chunk
      // counts as none.
      if (part === undefined || part.part !== parts.length) return end(undefined)
      parts.push(part)
      if (part.isLast) return end(joined(parts))
      timers.cancel(timer)
      timer = timers.after(furtherMs, () => end(undefined))
    })
    const stop = () => {
      timers.cancel(timer)
      unlisten()
    }
    const furtherMs = question.about === "connection" ? connectionMs : furtherChunkMs
    const end = (answer: IntrospectionAnswer | undefined) => {
      stop()
      resume(Effect.succeed(answer))
    }
    const asked: IntrospectionQuery = { v: 1, ...question }
    say(names.subjects.ask(partition), JSON.stringify(asked), inbox)
    return Effect.sync(stop)
  })
})

const joined = (parts: ReadonlyArray<IntrospectionChunk>): IntrospectionAnswer | undefined => {
  const [first] = parts
  return first === undefined
    ? undefined
    : {
        ...first,
        ...parts.at(-1),
        endpoints: parts.flatMap(({ endpoints }) => endpoints),
        tenants: parts.flatMap(({ tenants = [] }) => tenants)
      }
}
