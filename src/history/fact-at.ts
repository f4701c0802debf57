import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { Fact } from "../domain/fact.ts"

/** Parses a fact; none if the text is not a fact. */
export const decodeFact = Schema.decodeUnknownOption(Schema.fromJsonString(Fact))

/**
 * Returns the fields of a stored fact, unchecked; none if the text is not JSON. For scans of many
 * facts of which most are passed over: decoding one costs ten times as much.
 */
export const rawFields = (text: string): { readonly [field: string]: unknown } => {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

const eventSeqPattern = /"eventSeq":(\d+)/

/**
 * Returns the sequence of the event that a fact is about, by its text. A quoted text inside the
 * fact would have its quotes escaped.
 */
export const eventSeqIn = (text: string): number =>
  Number(eventSeqPattern.exec(text)?.[1] ?? Number.NaN)

/** Reads the fact at a sequence of HISTORY from the stream's leader; none if there is none. */
export const readFact = Effect.fnUntraced(function* (seq: number) {
  const { names, readMessage } = yield* Broker
  const message = yield* readMessage("read a fact", names.history, { seq })
  return message === null ? Option.none() : decodeFact(message.string())
})
