import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/connection.ts"
import { Fact } from "../domain/fact.ts"

/** Reads the text of a fact; none where it is not one. */
export const decodeFact = Schema.decodeUnknownOption(Schema.fromJsonString(Fact))

/** The fact that the history holds at a sequence, from its leader; none where there is none. */
export const readFact = Effect.fnUntraced(function* (seq: number) {
  const { ask, jsm, names } = yield* Broker
  const message = yield* ask("read a fact", () => jsm.streams.getMessage(names.history, { seq }))
  return message === null ? Option.none() : decodeFact(message.string())
})
