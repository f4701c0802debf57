import { Option, Schema } from "effect"
import { Fact, factKinds } from "../../domain/fact.ts"
import { nobody } from "../../domain/token.ts"

/** A fact as far as an audit has looked at it: to check all of each of millions takes too long. */
export interface Loose {
  readonly kind?: unknown
  readonly tenant?: unknown
  readonly endpoint?: unknown
  readonly event?: unknown
  readonly eventSeq?: unknown
  readonly eventAt?: unknown
  readonly round?: unknown
  readonly attempt?: unknown
  readonly reason?: unknown
  readonly dead?: unknown
  readonly plan?: unknown
  readonly type?: unknown
  readonly change?: unknown
}

/** A round of a delivery of the event that stands at a sequence. */
export interface RoundAt {
  readonly tenant: string
  readonly endpoint: string
  readonly eventSeq: number
  readonly round: string
}

/** Who a fact about a delivery is about. */
export interface About extends RoundAt {
  readonly eventAt: number
}

/** A name for a round of a delivery. */
export const roundName = ({ endpoint, eventSeq, round, tenant }: RoundAt): string =>
  `${eventSeq}.${tenant}.${endpoint}.${round}`

/** A name for what a `missing` fact tells of: a round, or an event that reached nobody. */
export const raisedName = ({ endpoint, ...about }: RoundAt): string =>
  endpoint === nobody ? `${about.eventSeq}` : roundName({ endpoint, ...about })

const kinds: ReadonlySet<unknown> = new Set(factKinds)

/** The bytes of a fact as an object that says when it was told and of what kind it is; undefined where they are none. */
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

/** What an audit needs of a plan. */
export interface LoosePlan {
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

/** The plan that a fact stores; undefined where it is none. */
export const planOf = ({ plan }: Loose): LoosePlan | undefined => (isPlan(plan) ? plan : undefined)

/** A fact, checked in full. */
export const strictly = (record: Loose): Fact | undefined => Option.getOrUndefined(decode(record))
const decode = Schema.decodeUnknownOption(Fact)
