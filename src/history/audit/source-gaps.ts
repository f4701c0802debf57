import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { remadeGap } from "../../broker/losses.ts"
import { readLinks } from "../../broker/sources/links.ts"
import type { Names } from "../../domain/names.ts"
import type { Origin } from "../../domain/origin.ts"
import { timeText } from "../../domain/timestamp.ts"
import type { AuditProblem } from "./problem.ts"

/** Of how a stream of another account is reached, in the origins of what is copied from it. */
const fingerprint = /:.*/
/** Maximum number of gaps of one source that are listed. */
const maxListedGaps = 16

/** Sequences of a source between those of two events that follow each other. */
interface Gap {
  readonly from: number
  readonly to: number
  /** When the events around it were stored in the event stream, ms since the epoch. */
  readonly after: number
  readonly before: number
}

interface SourceRun {
  seq: number
  at: number
  /** Number of the last restart of the source, 0 for none: another one begins anew. */
  restart: number
  readonly gaps: Array<Gap>
}

/**
 * What is missing among the events that were copied from tenants' streams. These give each event that
 * they acknowledge the next sequence, and the broker copies them in order.
 */
export class SourceGaps {
  readonly #names: Pick<Names, "tenantOf">
  readonly #runs = new Map<string, SourceRun>()

  constructor(names: Pick<Names, "tenantOf">) {
    this.#names = names
  }

  /** Events must be shown in order. @param at when it was stored, ms since the epoch. */
  see({ restart, seq, stream }: Origin, at: number): void {
    // Of other sources only some messages are copied.
    if (this.#names.tenantOf(stream) === undefined) return
    const number = restart?.number ?? 0
    const run = this.#runs.get(stream)
    if (run === undefined) {
      this.#runs.set(stream, { seq, at, restart: number, gaps: [] })
      return
    }
    const missing = seq - run.seq - 1
    if (
      number === run.restart &&
      missing > 0 &&
      missing < remadeGap &&
      run.gaps.length < maxListedGaps
    )
      run.gaps.push({ from: run.seq + 1, to: seq - 1, after: run.at, before: at })
    Object.assign(run, { seq, at, restart: number })
  }

  /** By stream, as origins name it, the first gaps of those that have any. */
  get found(): ReadonlyMap<string, ReadonlyArray<Gap>> {
    return new Map(
      [...this.#runs].flatMap(([stream, { gaps }]) => (gaps.length === 0 ? [] : [[stream, gaps]]))
    )
  }
}

/**
 * Returns what was published to tenants' streams and never came to the event stream. Leaves out
 * sequences at which the tenant's stream still has a message of other subjects, as where somebody had
 * it take more: it is not copied.
 */
export const findNotCopied = Effect.fnUntraced(function* ({ found }: SourceGaps) {
  const problems: Array<AuditProblem> = []
  if (found.size === 0) return problems
  const { names } = yield* Broker
  const { links } = yield* readLinks(names.events)
  for (const [origin, gaps] of found) {
    const stream = origin.replace(fingerprint, "")
    const tenant = names.tenantOf(stream) ?? ""
    const reader = links.find(({ link }) => link.source === stream)?.link.reader
    for (const gap of gaps) {
      const message = reader === undefined ? null : yield* reader.message(gap.from)
      const isOther = message?.subject.startsWith(`${names.eventRoot}.${tenant}.`) === false
      if (!isOther) problems.push(notCopied(stream, tenant, gap))
    }
  }
  return problems
})

const notCopied = (
  stream: string,
  tenant: string,
  { after, before, from, to }: Gap
): AuditProblem => ({
  kind: "event-not-copied",
  ...{ tenant, stream, streamSeq: from },
  says: `${from === to ? `message ${from} of ${stream} is` : `messages ${from} to ${to} of ${stream} are`} not in the event stream, which has those around, stored ${timeText(after)} and ${timeText(before)}: removed there before the broker copied what was published, or from the event stream since; publish ${from === to ? "it" : "them"} again`
})
