import { Option, Schema, SchemaGetter } from "effect"
import { Fact } from "../domain/fact.ts"

const decode = Schema.decodeUnknownOption(Fact)
const encode = Schema.encodeSync(Schema.toCodecJson(Fact))

type Record = Readonly<{ [name: string]: unknown }>

/**
 * Returns the record of a fact as it is answered: its times are texts (domain/timestamp.ts). Fields
 * that this version does not know remain as they are stored.
 */
export const answeredFact = (record: Record): Record =>
  Option.match(decode(record), {
    onNone: () => record,
    onSome: (fact) => ({ ...record, ...Object(encode(fact)) })
  })

/** The record of a fact as it is stored; in JSON as it is answered. */
export const FactRecord = Schema.declare(
  (value): value is Record => typeof value === "object" && value !== null,
  {
    expected: "the record of a fact",
    toCodecJson: () =>
      Schema.link<Record>()(Schema.Record(Schema.String, Schema.Unknown), {
        decode: SchemaGetter.passthrough(),
        encode: SchemaGetter.transform(answeredFact)
      })
  }
)
