import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { Fact } from "../domain/fact.ts"

/** Parses a fact; none if the text is not a fact. */
export const decodeFact = Schema.decodeUnknownOption(Schema.fromJsonString(Fact))

/** Reads the fact at a sequence of HISTORY from the stream's leader; none if there is none. */
export const readFact = Effect.fnUntraced(function* (seq: number) {
  const { names, readMessage } = yield* Broker
  const message = yield* readMessage("read a fact", names.history, { seq })
  return message === null ? Option.none() : decodeFact(message.string())
})
