import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { ifFound, streamNotFound } from "../../broker/broker-error.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { firstSince } from "../../broker/scan.ts"
import { millisOf } from "../../broker/stream-message.ts"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import type { AuditProblem } from "./problem.ts"
import type { AuditReach } from "./reach.ts"

/** Messages of one gap that are listed. */
const maxListedGap = 1_000

/** Sequences, kept as runs: those that are added come nearly in order. */
export class SequenceRuns {
  readonly #runs: Array<{ readonly from: number; to: number }> = []

  add(seq: number): void {
    const last = this.#runs.at(-1)
    if (last === undefined || seq > last.to + 1) this.#runs.push({ from: seq, to: seq })
    else if (seq === last.to + 1) last.to = seq
    else if (!this.has(seq)) {
      this.#runs.push({ from: seq, to: seq })
      this.#runs.sort((a, b) => a.from - b.from)
    }
  }

  /** The highest one; 0 without any. */
  get last(): number {
    return this.#runs.at(-1)?.to ?? 0
  }

  has(seq: number): boolean {
    let low = 0
    let high = this.#runs.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#runs[middle]?.from ?? 0) <= seq) low = middle + 1
      else high = middle
    }
    return (this.#runs[low - 1]?.to ?? 0) >= seq
  }
}

/** What a reading knows of what came in from outside. Sequences are those of INTAKE. */
export interface IncomingRead {
  /** Those that an event in the event stream names as its origin. */
  readonly copied: SequenceRuns
  /** Those that have left the quarantine: the history says who let them out or discarded them. */
  readonly leftQuarantine: ReadonlySet<number>
}

/**
 * Compares what came in with the events of it: each message of INTAKE is one event, once it was
 * copied, and nobody has removed one from between the others. Messages that are not copied yet are
 * no problem: the audit's cautions count them.
 */
export const compareIncoming = Effect.fnUntraced(function* (
  { copied, leftQuarantine }: IncomingRead,
  { begins, scope, since }: AuditReach
) {
  const { names, streamInfo } = yield* Broker
  const info = yield* ifFound(streamInfo("look at what came in", names.intake), streamNotFound)
  const problems: Array<AuditProblem> = []
  if (info === undefined || info.state.messages === 0) return problems
  const { subjects } = names
  const kinds = subjects.incomingTransforms.map(({ src }) =>
    scope.tenant === undefined ? src : src.replace("*", scope.tenant)
  )
  // A copy was stored after its original, by another node's clock.
  const dueSince = Math.max(scope.since, since, begins.events.dueSince) + maxClockSkewMs
  const isWhole = scope.isWhole && scope.since <= 0 && begins.events.dueSince <= 2 * maxClockSkewMs
  const from = isWhole ? 1 : yield* firstSince(names.intake, dueSince)
  let next: number | undefined
  const quarantine = subjects.quarantine("")
  yield* readThrough(
    {
      stream: names.intake,
      subjects: scope.tenant === undefined ? [">"] : kinds,
      from: Math.max(from, info.state.first_seq),
      to: info.state.last_seq,
      headersOnly: true
    },
    ({ message, nanoseconds, seq }) => {
      const isEvent = !message.subject.startsWith(quarantine)
      // What is in quarantine stays when the events around it have expired.
      if (next !== undefined && scope.tenant === undefined)
        for (let gone = next; gone < Math.min(seq, next + maxListedGap); gone++)
          if (!leftQuarantine.has(gone))
            problems.push(removed(names.intake, gone, copied.has(gone)))
      if (isEvent || next !== undefined) next = seq + 1
      const isDue = isWhole || millisOf(nanoseconds) >= dueSince
      if (isEvent && isDue && seq <= copied.last && !copied.has(seq))
        problems.push(lost(names.intake, seq, message.subject))
    }
  )
  return problems
})

const lost = (stream: string, streamSeq: number, subject: string): AuditProblem => ({
  kind: "intake-lost",
  ...{ stream, streamSeq },
  says: `message ${streamSeq} of ${stream} (${subject}) came in and was acknowledged, later ones are events, and it is none: publish it again`
})

const removed = (stream: string, streamSeq: number, isEvent: boolean): AuditProblem =>
  isEvent
    ? {
        kind: "event-without-intake",
        ...{ stream, streamSeq },
        says: `an event names message ${streamSeq} of ${stream} as its origin, and that is not there, though those around it are`
      }
    : {
        kind: "intake-gap",
        ...{ stream, streamSeq },
        says: `message ${streamSeq} of ${stream} is not there, though those around it are: it was removed, and no event has come of it`
      }
