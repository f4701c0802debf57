import { Option, Schema, SchemaGetter } from "effect"
import { Fact, factKinds } from "../domain/fact.ts"
import { nobody } from "../domain/token.ts"

/** A fact with unchecked fields: to validate millions of facts in full takes too long. */
export interface Loose {
  readonly kind?: unknown
  readonly at?: unknown
  readonly tenant?: unknown
  readonly endpoint?: unknown
  readonly event?: unknown
  readonly eventSeq?: unknown
  readonly eventAt?: unknown
  readonly round?: unknown
  readonly attempt?: unknown
  readonly durationMs?: unknown
  readonly reason?: unknown
  readonly dead?: unknown
  readonly plan?: unknown
  readonly type?: unknown
  readonly change?: unknown
}

/** A round of a delivery, by its event's sequence. */
export interface RoundAt {
  readonly tenant: string
  readonly endpoint: string
  readonly eventSeq: number
  readonly round: string
}

/** The round that a fact is about, with the time of its event. */
export interface About extends RoundAt {
  readonly eventAt: number
}

/** A key for a round of a delivery. */
export const roundName = ({ endpoint, eventSeq, round, tenant }: RoundAt): string =>
  `${eventSeq}.${tenant}.${endpoint}.${round}`

/** A key for the subject of a `missing` fact: a round, or an event that was not routed. */
export const raisedName = ({ endpoint, ...about }: RoundAt): string =>
  endpoint === nobody ? `${about.eventSeq}` : roundName({ endpoint, ...about })

const kinds: ReadonlySet<unknown> = new Set(factKinds)

/** Parses a fact, and checks its version, kind and time only; undefined if it is none. */
export const readRecord = (text: string): Loose | undefined => {
  try {
    const record: unknown = JSON.parse(text)
    return isRecord(record) ? record : undefined
  } catch {
    return undefined
  }
}

const isRecord = (record: unknown): record is Loose => {
  if (typeof record !== "object" || record === null) return false
  const { at, kind, v }: { at?: unknown; kind?: unknown; v?: unknown } = record
  return v === 1 && kinds.has(kind) && typeof at === "number"
}

/** Undefined where it does not say which round of which delivery it is about. */
export const aboutOf = ({
  endpoint,
  eventAt,
  eventSeq,
  round,
  tenant
}: Loose): About | undefined =>
  typeof tenant === "string" &&
  typeof endpoint === "string" &&
  typeof eventSeq === "number" &&
  Number.isSafeInteger(eventSeq) &&
  eventSeq > 0 &&
  typeof eventAt === "number" &&
  (round === undefined || typeof round === "string")
    ? { tenant, endpoint, eventSeq, eventAt, round: round ?? "0" }
    : undefined

export const numberIn = (value: unknown): number | undefined =>
  typeof value === "number" ? value : undefined

export const textIn = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined

/** The fields of a plan that an audit needs. */
interface LoosePlan {
  readonly part: number
  readonly last: boolean
  readonly endpoints: ReadonlyArray<{ readonly id: string }>
  readonly skipped: ReadonlyArray<{ readonly reason: string }>
}

const isPlan = (plan: unknown): plan is LoosePlan => {
  if (typeof plan !== "object" || plan === null) return false
  const { endpoints, last, part, skipped }: Partial<Record<keyof LoosePlan, unknown>> = plan
  return (
    typeof part === "number" &&
    typeof last === "boolean" &&
    Array.isArray(endpoints) &&
    endpoints.every((each) => typeof each?.id === "string") &&
    Array.isArray(skipped)
  )
}

/** Returns the plan of a fact; undefined if it has none or it is malformed. */
export const planOf = ({ plan }: Loose): LoosePlan | undefined => (isPlan(plan) ? plan : undefined)

/** Validates a fact in full. */
export const strictly = (record: Loose): Fact | undefined => Option.getOrUndefined(decode(record))

const decode = Schema.decodeUnknownOption(Fact)
const encode = Schema.encodeSync(Schema.toCodecJson(Fact))

type Fields = Readonly<{ [name: string]: unknown }>

/**
 * Returns the record of a fact as it is answered: its times are texts (domain/timestamp.ts). Fields
 * that this version does not know remain as they are stored.
 */
export const answeredFact = (record: Fields): Fields =>
  Option.match(decode(record), {
    onNone: () => record,
    onSome: (fact) => ({ ...record, ...Object(encode(fact)) })
  })

/** The record of a fact as it is stored; in JSON as it is answered. */
export const FactRecord = Schema.declare(
  (value): value is Fields => typeof value === "object" && value !== null,
  {
    expected: "the record of a fact",
    toCodecJson: () =>
      Schema.link<Fields>()(Schema.Record(Schema.String, Schema.Unknown), {
        decode: SchemaGetter.passthrough(),
        encode: SchemaGetter.transform(answeredFact)
      })
  }
)
