import type { StoredMsg, StreamInfo } from "@nats-io/jetstream"
import { Effect } from "effect"
import { maxNodeSkewMs } from "../../domain/clock-bounds.ts"
import { eventIdHeader } from "../../domain/intake.ts"
import { readOrigin } from "../../domain/origin.ts"
import { Broker } from "../broker.ts"
import { BrokerError } from "../broker-error.ts"
import type { Divergence, Verdict } from "./divergence.ts"
import { CopyVerdicts } from "./divergence.ts"
import type { SourceLink } from "./links.ts"
import { readLinks } from "./links.ts"

/** Messages that are compared at a time. */
const limits = { batch: 1_000, max_bytes: 4 * 1024 * 1024 }
/** Pause before a difference is believed, ms: a newly elected leader may need a moment. */
const confirmAfterMs = 1_000

/** A copy and the origin that its header names. */
interface Copy extends Omit<Verdict, "isSame"> {
  readonly message: StoredMsg
}

/** The parts of a message that a copy and its original have in common. */
type Comparable = Pick<StoredMsg, "data" | "header" | "subject" | "time">

/** How a copy may differ from its original. */
interface Tolerance {
  /** Returns the subject of the copy. */
  readonly copiedAs: (subject: string) => string
  /** The clocks of the brokers that store the two may differ, ms. */
  readonly skewMs: number
  /** How long a message with the same id is the same message, ms. */
  readonly windowMs: number
}

/**
 * True if one message is a copy of the other: subject, id and body are equal, and it was stored
 * after it. An equal message on a sequence that was given again was stored later than the copy. It
 * is another event, unless both have an id and the source deduplicates over that time: then it is
 * the same event, published again. What came in from outside is the same event for as long as its
 * source keeps it.
 */
export const isCopyOf = (
  original: Comparable,
  copy: Comparable,
  { copiedAs, skewMs, windowMs }: Tolerance
): boolean => {
  const id = original.header.get("Nats-Msg-Id")
  const incoming = original.header.get(eventIdHeader)
  const laterMs = incoming !== "" ? Number.POSITIVE_INFINITY : id === "" ? 0 : windowMs
  return (
    copiedAs(original.subject) === copy.subject &&
    id === copy.header.get("Nats-Msg-Id") &&
    incoming === copy.header.get(eventIdHeader) &&
    original.time.getTime() <= copy.time.getTime() + skewMs + laterMs &&
    Buffer.compare(original.data, copy.data) === 0
  )
}

/** Compares the copies of one source. */
class LinkComparison {
  readonly link: SourceLink
  readonly verdicts: CopyVerdicts
  readonly #info: StreamInfo
  readonly #tolerance: Tolerance

  constructor(link: SourceLink, info: StreamInfo) {
    this.link = link
    this.#info = info
    this.verdicts = new CopyVerdicts(link.restart)
    this.#tolerance = {
      copiedAs: link.copiedAs,
      // A server alone is its own leader, in no cluster.
      skewMs: info.cluster?.name === undefined ? 0 : maxNodeSkewMs,
      windowMs: info.config.duplicate_window / 1e6
    }
  }

  readonly see = Effect.fnUntraced({ self: this }, function* (copies: ReadonlyArray<Copy>) {
    const { first_seq, last_seq } = this.#info.state
    const compared = copies.filter((copy) => !this.verdicts.isSuperseded(copy))
    const stored = compared.filter(({ seq }) => seq >= first_seq && seq <= last_seq)
    const originals = yield* this.#readAll(stored.map(({ seq }) => seq))
    for (const { message, restart, seq } of copies) {
      const original = originals.get(seq)
      const isSame =
        seq > last_seq
          ? false
          : original === undefined
            ? undefined
            : isCopyOf(original, message, this.#tolerance)
      this.verdicts.see({ seq, restart, isSame })
    }
  })

  /** Reads the source's messages with these sequences, as far as they are stored. */
  readonly #readAll = Effect.fnUntraced({ self: this }, function* (seqs: ReadonlyArray<number>) {
    const { filters, reader } = this.link
    const open = new Set(seqs)
    const found = new Map<number, StoredMsg>()
    const [filter = ">"] = filters.length === 1 ? filters : []
    const last = Math.max(0, ...open)
    let next = Math.min(...open)
    while (next <= last) {
      const messages = yield* reader.batch(filter, next, limits)
      for (const message of messages) if (open.delete(message.seq)) found.set(message.seq, message)
      const end = messages.at(-1)
      if (end === undefined) break
      next = end.seq + 1
    }
    // Another subject, or one that a replica which lags has not: the leader knows.
    for (const seq of open) {
      const message = yield* reader.message(seq)
      if (message !== null) found.set(seq, message)
    }
    return found
  })
}

/** What a comparison found. */
interface Compared {
  readonly divergences: ReadonlyArray<Divergence>
  /** The next sequence to compare. */
  readonly next: number
  /** When the last message was stored that was compared, ms since the epoch; undefined if none was. */
  readonly at: number | undefined
  /** Sources that could not be read. */
  readonly unread: ReadonlyMap<string, BrokerError>
  /** True if a source may have lost more than the range shows: what was copied before it. */
  readonly isStartOpen: boolean
}

/** Returns the source of a copy by its header. That of another account has a suffix. */
const sourceNameOf = (stream: string): string => stream.split(":", 1)[0] ?? stream

const copyOf = (message: StoredMsg) => {
  const origin = readOrigin(message.header.get("Nats-Stream-Source"))
  return origin === undefined
    ? []
    : [
        {
          source: sourceNameOf(origin.stream),
          copy: { message, seq: origin.seq, restart: origin.restart }
        }
      ]
}

/** Which copies to compare. */
interface ComparedRange {
  /** Sequences of the stream that copies, inclusive. (Default for the last: the last one there) */
  readonly from: number
  readonly to?: number
  /** Selects sources. (Default: all) */
  readonly isWanted?: (source: string) => boolean
}

const compareOnce = Effect.fnUntraced(function* (target: string, range: ComparedRange) {
  const { from, isWanted = () => true, to = Number.POSITIVE_INFINITY } = range
  const { batch } = yield* Broker
  const { info, links } = yield* readLinks(target)
  const last = Math.min(to, info.state.last_seq)
  const unread = new Map<string, BrokerError>()
  const comparisons = new Map<string, LinkComparison>()
  for (const { info, link } of links.filter(({ link }) => isWanted(link.source)))
    if (info instanceof BrokerError) unread.set(link.source, info)
    else comparisons.set(link.source, new LinkComparison(link, info))
  let next = Math.max(1, from, info.state.first_seq)
  let at: number | undefined
  while (comparisons.size > 0 && next <= last) {
    const messages = (yield* batch(target, ">", next, limits)).filter(({ seq }) => seq <= last)
    const end = messages.at(-1)
    if (end === undefined) break
    const bySource = Map.groupBy(messages.flatMap(copyOf), ({ source }) => source)
    for (const [source, copies] of bySource)
      yield* comparisons.get(source)?.see(copies.map(({ copy }) => copy)) ?? Effect.void
    next = end.seq + 1
    at = end.time.getTime()
  }
  const divergences = [...comparisons.values()].flatMap(({ link, verdicts }) => {
    const found = verdicts.result()
    if (found === undefined) return []
    const { restart, source } = link
    const copied = Math.max(found.copied, link.copied)
    return [{ ...found, target, source, restarts: restart?.number ?? 0, copied }]
  })
  const isStartOpen = [...comparisons.values()].some(({ verdicts }) => verdicts.isStartOpen)
  return { divergences, next, at, unread, isStartOpen } satisfies Compared
})

/**
 * Compares what a stream copied with what its sources have. Finds messages that a source lost after
 * they were copied, and where it must start again so that what has taken their sequences is copied,
 * and nothing twice.
 */
export const compareSources = Effect.fnUntraced(function* (target: string, range: ComparedRange) {
  const once = compareOnce(target, range)
  const found = yield* once
  return found.divergences.length === 0 ? found : yield* Effect.delay(once, confirmAfterMs)
})
