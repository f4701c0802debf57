import { Schema } from "effect"
import type { Audit } from "./audit.ts"
import { firstRemoved, type StreamBeginning } from "./reach.ts"
import { digestSpan, type StreamReading, type Stretch } from "./stream-reading.ts"

const StretchSchema = Schema.Struct({
  first: Schema.Int,
  last: Schema.Int,
  messages: Schema.Int,
  sha256: Schema.String
})

/** What an audit read of a stream. */
export const StreamProof = Schema.Struct({
  /** The first and the last sequence of the range. */
  first: Schema.Int,
  last: Schema.Int,
  messages: Schema.Int,
  stretches: Schema.Array(StretchSchema),
  /** The first message of each hour, and when it was stored, ms since the epoch. */
  hours: Schema.optionalKey(Schema.Array(Schema.Struct({ seq: Schema.Int, at: Schema.Number })))
})
export type StreamProof = typeof StreamProof.Type

/** What an audit read and found, for comparison with a later one. Times in ms since the epoch. */
export const Proof = Schema.Struct({
  v: Schema.Literal(1),
  petrel: Schema.String,
  /** The id of the installation; absent where it has none. */
  installation: Schema.optionalKey(Schema.String),
  at: Schema.Number,
  verdict: Schema.String,
  tenant: Schema.optionalKey(Schema.String),
  /** Sequences per fingerprint. */
  span: Schema.Literal(digestSpan),
  events: StreamProof,
  history: StreamProof,
  deliveries: Schema.Record(Schema.String, Schema.Int)
})
export type Proof = typeof Proof.Type

const streamProof = ({ digests, marks, messages, next }: StreamReading): StreamProof => {
  const stretches = digests.all()
  const first = stretches[0]?.first ?? next
  return { first, last: next - 1, messages, stretches, hours: marks }
}

/** What made a proof, and when. */
export interface ProofOrigin extends Pick<Proof, "at" | "petrel"> {
  readonly installation: string | undefined
}

/** The proof of an audit. */
export const proofOf = (
  { reading, judgement, reach }: Audit,
  { at, installation, petrel }: ProofOrigin
): Proof => {
  const { reasons: _, ...deliveries } = judgement.tally
  const { tenant } = reach.scope
  return {
    v: 1,
    petrel,
    ...(installation === undefined ? {} : { installation }),
    at,
    verdict: judgement.verdict,
    ...(tenant === undefined ? {} : { tenant }),
    span: digestSpan,
    events: streamProof(reading.events),
    history: streamProof(reading.history),
    deliveries
  }
}

/** How a reading compares with a proof, in messages. */
interface ProofComparison {
  readonly same: number
  /** Not comparable: they, or a part of their stretch, are gone by age or size. */
  readonly gone: number
  /** Sequences whose messages are gone although neither age nor size has dropped them. */
  readonly removed: { readonly from: number; readonly to: number } | undefined
  /** Stretches of the proof whose content has changed. */
  readonly changed: ReadonlyArray<Stretch>
}

const spanOf = ({ first }: Stretch): number => Math.floor(first / digestSpan)

/**
 * Compares this reading with a proof of an earlier one. A stretch whose beginning only one of the
 * two has read (it expired, or was out of range) cannot be compared.
 *
 * @param begins where the stream begins now, and what it should still have.
 */
export const compareWithProof = (
  { hours = [], last, stretches }: StreamProof,
  { digests }: Pick<StreamReading, "digests">,
  begins: StreamBeginning
): ProofComparison => {
  const all = digests.all()
  const now = new Map(all.map((stretch) => [spanOf(stretch), stretch]))
  const { marked } = digests
  const begin = all[0]?.first ?? Number.POSITIVE_INFINITY
  const from = firstRemoved(hours, begins)
  const removed = from === undefined ? undefined : { from, to: Math.min(last, begins.first - 1) }
  const isRemoved = (stretch: Stretch) =>
    removed !== undefined && stretch.last >= removed.from && stretch.first <= removed.to
  let [same, gone] = [0, 0]
  const changed: Array<Stretch> = []
  for (const [index, before] of stretches.entries()) {
    const isLast = index === stretches.length - 1
    const found =
      isLast && marked !== undefined && spanOf(marked) === spanOf(before)
        ? marked
        : now.get(spanOf(before))
    const isCut =
      begin > before.first || (found !== undefined && index === 0 && found.first < before.first)
    if (isRemoved(before)) continue
    if (isCut) gone += before.messages
    else if (found?.sha256 === before.sha256) same += before.messages
    else changed.push(before)
  }
  return { same, gone, removed, changed }
}
