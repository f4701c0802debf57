import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { askInParts } from "./exchange.ts"
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
  const { names } = yield* Broker
  const asked: IntrospectionQuery = { v: 1, ...question }
  const parts = yield* askInParts(
    names.subjects.ask(partition),
    asked,
    (text) => Option.getOrUndefined(decode(text)),
    {
      first: answerWithinMs,
      next: question.about === "connection" ? connectionMs : furtherChunkMs
    }
  )
  return parts === undefined ? undefined : joined(parts)
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
