import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { removeIf } from "../../broker/removal.ts"
import { scanQueue } from "../../broker/scan.ts"
import type { BacklogLabel, OriginStreams } from "../../domain/backlog-message.ts"
import { backlogEntriesIn, labelIn, waitingIn } from "../../domain/backlog-message.ts"
import type { GetHeader } from "../../domain/header-names.ts"
import type { Stored } from "./backlog-write.ts"
import { waitingName } from "./backlog-write.ts"
import type { Replaced } from "./written-tails.ts"

/** The end of an endpoint's backlog. */
interface BacklogEnd {
  /** Sequence of its last message; 0 where there is none. */
  readonly tail: number
  /** Number of deliveries that were ever stored in it, see `BacklogLabel`. */
  readonly stored: number
}

/** The last message of a backlog, as far as it says who wrote it. */
export interface LastMessage {
  readonly seq: number
  readonly label: BacklogLabel | undefined
}

/** What was stored after a message that was known as the last. */
export interface Findings extends BacklogEnd {
  /** Those of the wanted deliveries that are there, by `waitingName`. */
  readonly found: ReadonlyMap<string, Pick<Stored, "entry" | "seq">>
  /** Messages that a message of this owner replaces. */
  readonly replaced: ReadonlySet<number>
}

/** The stream that an endpoint's backlog lies in, and its subject there. */
export interface BacklogSubject {
  readonly stream: string
  readonly subject: string
}

const headersOf =
  ({ header }: StoredMsg): GetHeader =>
  (name) =>
    header.get(name) || undefined

/** Reads the last message of a backlog from the leader; null where there is none. */
export const readLast = ({ stream, subject }: BacklogSubject) =>
  Effect.flatMap(Broker, ({ readMessage }) =>
    readMessage("look at the end of a backlog", stream, { last_by_subj: subject })
  )

/**
 * Reads the end of a backlog from the stream's leader. After a message of a version that did not
 * count, the number of messages stands for the number stored: each held one delivery.
 */
export const readBacklogEnd = Effect.fnUntraced(function* (of: BacklogSubject) {
  const last = yield* readLast(of)
  if (last === null) return { tail: 0, stored: 0, label: undefined }
  const label = labelIn(headersOf(last))
  if (label !== undefined) return { tail: last.seq, stored: label.stored, label }
  const { streamInfo } = yield* Broker
  const filter = { subjects_filter: of.subject }
  const { state } = yield* streamInfo("count what waits", of.stream, filter)
  return { tail: last.seq, stored: state.subjects?.[of.subject] ?? 0, label }
})

/**
 * Reads all that was stored in a backlog after a message that was known as its last.
 *
 * @param wanted the deliveries that are looked for, by `waitingName`.
 */
export const lookAfter = Effect.fnUntraced(function* (
  of: BacklogSubject,
  known: BacklogEnd,
  {
    owner,
    streams,
    wanted
  }: {
    readonly owner: number
    readonly streams: OriginStreams
    readonly wanted: ReadonlySet<string>
  }
) {
  const found = new Map<string, Pick<Stored, "entry" | "seq">>()
  const replaced = new Set<number>()
  let { stored, tail } = known
  const see = (message: StoredMsg) => {
    const { seq, subject } = message
    const get = headersOf(message)
    const entries = backlogEntriesIn(subject, get, streams) ?? []
    const label = labelIn(get)
    // What a former owner stored meanwhile is late. The next one may take its deliveries for handled.
    const isOwn = label?.owner === owner
    for (const entry of entries) {
      const name = waitingName(waitingIn(entry))
      if (isOwn && wanted.has(name)) found.set(name, { seq, entry: entry.entry })
    }
    stored = Math.max(stored, label?.stored ?? stored + entries.length)
    if (isOwn) for (const one of label.replaces) replaced.add(one)
    tail = seq
  }
  while (true) {
    const from = tail
    yield* Stream.runForEach(scanQueue(of.stream, of.subject, tail + 1), (message) =>
      Effect.sync(() => see(message))
    )
    if (tail > from) continue
    // Nothing follows: the known one is still the last, or what is left of the backlog ends earlier.
    const last = yield* readLast(of)
    if ((last?.seq ?? 0) > tail) continue
    return { found, replaced, tail: last?.seq ?? 0, stored } satisfies Findings
  }
})

/** Tells a message from another one that a truncated stream has at its sequence. */
const isThat =
  ({ subject }: BacklogSubject, { packed }: Replaced) =>
  (message: StoredMsg): boolean =>
    message.subject === subject &&
    (packed === undefined || message.header.get(packed[0]) === packed[1])

/** Removes a message of references, unless a truncated stream has another one at its sequence. */
export const removeReplaced = (of: BacklogSubject, one: Replaced) =>
  removeIf("remove what was stored again", of.stream, one.seq, isThat(of, one))

/**
 * Removes all that a backlog holds before a message, unless a truncated stream has another one at its
 * sequence.
 */
export const purgeReplaced = Effect.fnUntraced(function* (of: BacklogSubject, by: Replaced) {
  const { purge, readMessage } = yield* Broker
  const { stream, subject } = of
  const { seq } = by
  const message = yield* readMessage("look at what was stored again", stream, { seq })
  if (message !== null && isThat(of, by)(message))
    yield* purge("purge what was stored again", stream, { filter: subject, seq })
})
