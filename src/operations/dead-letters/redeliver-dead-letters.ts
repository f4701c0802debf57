import { Effect, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { DeadLetter } from "../../history/dead-letters.ts"
import type { EndpointRedelivery, RedeliverableLetter } from "../../rounds/redeliver.ts"
import { planRedelivery as planRounds, redeliver } from "../../rounds/redeliver.ts"
import type { RoundCounts, StartedRound } from "../../rounds/round.ts"
import { inOneTurn } from "../../rounds/turns.ts"
import type { DeadLetterSelection, LettersLimits } from "./dead-letter-selection.ts"
import {
  ReasonCounts,
  selectDeadLetters,
  selectionProblem,
  sortReasons
} from "./dead-letter-selection.ts"
import { NewestLetters } from "./newest-letters.ts"

/** Dead letters that are in memory together. */
const defaultChunk = 20_000
/** Endpoints that take nothing and are listed by name: a result is one message. */
const maxSkipped = 100

const left = {
  before: Schema.Int.annotateKey({ description: "Sent again before." }),
  deliveredLate: Schema.Int.annotateKey({
    description: "Delivered late, so that the receiver has them."
  }),
  superseded: Schema.Int.annotateKey({
    description:
      "Left out because a newer dead letter of the same delivery is selected, too: each delivery is sent once."
  }),
  /** Endpoints that take nothing now, with the number of their dead letters; at most 100 of them. */
  skipped: Schema.Array(
    Schema.Struct({
      endpoint: Schema.String.annotateKey({ description: "`<tenant>/<endpoint>`" }),
      why: Schema.Literals([
        "endpoint-removed",
        "endpoint-disabled",
        "endpoint-unreadable"
      ]).annotateKey({ description: "Why they are not sent." }),
      count: Schema.Int.annotateKey({ description: "How many they are." })
    })
  ).annotateKey({
    description: "Dead letters that are not sent, by endpoint; at most 100 of them."
  }),
  skippedElsewhere: Schema.Int.annotateKey({
    description: "Dead letters of further such endpoints."
  })
}

/** What is left alone by a redelivery. */
export const LeftAlone = Schema.Struct(left)
export type LeftAlone = typeof LeftAlone.Type

/**
 * Of those that are sent, how many may have been sent again before: the history has no facts from
 * then any more. (Default: 0)
 */
const mayRepeat = Schema.optionalKey(Schema.Int).annotateKey({
  description: "How many of them a receiver may have got already."
})

/** Endpoints that are paused or suspended, with the number of deliveries that wait; at most 100 of them. */
const waiting = Schema.optionalKey(
  Schema.Array(
    Schema.Struct({
      endpoint: Schema.String.annotateKey({ description: "`<tenant>/<endpoint>`" }),
      count: Schema.Int.annotateKey({ description: "How many they are." })
    })
  )
).annotateKey({
  description:
    "Of those that are sent, deliveries that wait because their endpoint is paused or suspended; at most 100 endpoints."
})

/** What a redelivery would do. */
export const RedeliveryPlan = Schema.Struct({
  selected: Schema.Int.annotateKey({ description: "Dead letters that were selected." }),
  redeliver: Schema.Int.annotateKey({
    description: "How many of them are sent, in total and by reason."
  }),
  reasons: ReasonCounts.annotateKey({ description: "How many, by reason." }),
  mayRepeat,
  waiting,
  gone: Schema.Int.annotateKey({
    description: "Ids that no longer exist: discarded, or too old and not kept."
  }),
  ...left
})
export type RedeliveryPlan = typeof RedeliveryPlan.Type

/** What a redelivery did. */
export const Redelivered = Schema.Struct({
  selected: Schema.Int.annotateKey({ description: "Dead letters that were selected." }),
  redelivered: Schema.Int.annotateKey({ description: "How many were sent." }),
  mayRepeat,
  waiting,
  gone: Schema.Int.annotateKey({ description: "Discarded, or too old and no longer kept." }),
  ...left
})
export type Redelivered = typeof Redelivered.Type

/** Where a redelivery goes on, and what it did before. */
export const RedeliveryCursor = Schema.Struct({
  after: Schema.Int.annotateKey({ description: "All dead letters up to this id are done." }),
  done: Schema.Struct({
    ...Redelivered.fields,
    /** Absent in records of consoles that did not count them. */
    superseded: left.superseded.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)))
  })
})
export type RedeliveryCursor = typeof RedeliveryCursor.Type

/** How a redelivery is watched. */
export interface RedeliveryOptions {
  /** Who asks for it, recorded in the history. */
  readonly by: string
  /** Called with the number of deliveries that wait for an endpoint while it is throttled, and 0. */
  readonly held?: ((endpoint: string, waiting: number) => void) | undefined
  /** Where it goes on, if it was interrupted and that is known. */
  readonly from?: RedeliveryCursor | undefined
  /** Called when all before a cursor is done. */
  readonly onCursor?: ((cursor: RedeliveryCursor) => void) | undefined
  /** The last fact there was before: what was sent in the same name since is its own. */
  readonly ownAfter?: number | undefined
  /** Dead letters that are in memory together. (Default: 20,000) */
  readonly chunk?: number | undefined
}

const nothing = {
  selected: 0,
  gone: 0,
  before: 0,
  deliveredLate: 0,
  superseded: 0,
  skipped: [],
  skippedElsewhere: 0
} satisfies Partial<Redelivered>

const withSkipped = (
  { skipped, skippedElsewhere }: Pick<LeftAlone, "skipped" | "skippedElsewhere">,
  { endpoint: id, fresh, tenant, unfit }: EndpointRedelivery
): Pick<LeftAlone, "skipped" | "skippedElsewhere"> => {
  const count = fresh.length
  if (unfit === undefined || count === 0) return { skipped, skippedElsewhere }
  const endpoint = `${tenant}/${id}`
  const known = skipped.find((one) => one.endpoint === endpoint && one.why === unfit)
  if (known !== undefined)
    return {
      skipped: skipped.map((one) => (one === known ? { ...one, count: one.count + count } : one)),
      skippedElsewhere
    }
  return skipped.length < maxSkipped
    ? { skipped: [...skipped, { endpoint, why: unfit, count }], skippedElsewhere }
    : { skipped, skippedElsewhere: skippedElsewhere + count }
}

const withUnsure = (
  { mayRepeat = 0 }: Pick<Redelivered, "mayRepeat">,
  plan: ReadonlyArray<EndpointRedelivery>
): Pick<Redelivered, "mayRepeat"> => {
  const sum = plan.reduce(
    (sum, { unfit, unsure }) => sum + (unfit === undefined ? unsure : 0),
    mayRepeat
  )
  return sum === 0 ? {} : { mayRepeat: sum }
}

/** Adds the deliveries of a chunk that wait, as their endpoint is paused. */
const withWaiting = (
  { waiting = [] }: Pick<Redelivered, "waiting">,
  plan: ReadonlyArray<EndpointRedelivery>
): Pick<Redelivered, "waiting"> => {
  const counts = new Map(waiting.map(({ count, endpoint }) => [endpoint, count]))
  for (const { endpoint, finishing, fresh, tenant, unfit, waits } of plan) {
    const count = finishing.length + (unfit === undefined ? fresh.length : 0)
    const name = `${tenant}/${endpoint}`
    if (waits && count > 0 && (counts.has(name) || counts.size < maxSkipped))
      counts.set(name, (counts.get(name) ?? 0) + count)
  }
  return counts.size === 0
    ? {}
    : { waiting: [...counts].map(([endpoint, count]) => ({ endpoint, count })) }
}

/** Adds what a chunk leaves alone, and how many it may not be the first to send again. */
const withLeft = <A extends LeftAlone & Pick<Redelivered, "mayRepeat" | "waiting">>(
  before: A,
  plan: ReadonlyArray<EndpointRedelivery>
): A => ({
  ...before,
  ...withUnsure(before, plan),
  ...withWaiting(before, plan),
  before: plan.reduce((sum, one) => sum + one.before, before.before),
  deliveredLate: plan.reduce((sum, one) => sum + one.late, before.deliveredLate),
  superseded: plan.reduce((sum, one) => sum + one.superseded, before.superseded),
  ...plan.reduce<Pick<LeftAlone, "skipped" | "skippedElsewhere">>(withSkipped, before)
})

/** Returns how many a chunk has sent already, before it was broken off. */
const ownIn = (plan: ReadonlyArray<EndpointRedelivery>): number =>
  plan.reduce((sum, one) => sum + one.own, 0)

/** Returns the ids of the dead letters that a plan sends. */
const idsIn = (plan: ReadonlyArray<EndpointRedelivery>): ReadonlySet<number | undefined> =>
  new Set(
    plan
      .flatMap(({ finishing, fresh, unfit }) => [
        ...(unfit === undefined ? fresh : []),
        ...finishing
      ])
      .map(({ dead }) => dead)
  )

/** The last dead letter there is: a redelivery does not send those of its own deliveries. */
const lastLetter = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the dead letters", names.dead)
  return state.last_seq
})

/** Returns what is kept of a dead letter. Copied: a part of a text keeps all of it in memory. */
const slim = ({ deadAt, delivery, id, reason }: DeadLetter): RedeliverableLetter => {
  const { endpoint, eventAt, eventSeq, round, tenant } = delivery
  return structuredClone({
    id,
    reason,
    deadAt,
    delivery: { tenant, endpoint, eventSeq, eventAt, round }
  })
}

/** What of a selection is sent: up to which dead letter, and of each delivery which one. */
interface Sending {
  readonly upTo: number
  readonly newest: NewestLetters
}

/** Reads which dead letters of a selection are the newest of their deliveries, from a cursor on. */
const readNewest = Effect.fnUntraced(function* (
  selection: DeadLetterSelection,
  { chunk: most = defaultChunk, from }: RedeliveryOptions,
  upTo: number
) {
  const newest = new NewestLetters()
  for (let after = from?.after; ; ) {
    const { next } = yield* inOneTurn(
      selectDeadLetters(selection, (letter) => newest.note(letter), { after, upTo, most })
    )
    if (next === undefined) return newest
    after = next
  }
})

/** Selects the next dead letters, and opens their rounds. Their contents are not kept in memory. */
const planChunk = Effect.fnUntraced(function* (
  selection: DeadLetterSelection,
  { by, held, ownAfter }: RedeliveryOptions,
  newest: NewestLetters,
  limits: LettersLimits
) {
  const { letters, missing, next } = yield* selectDeadLetters(selection, slim, limits)
  const isSuperseded = (letter: RedeliverableLetter) => newest.hasNewer(letter)
  const rounds = yield* planRounds({ letters, by, held, isSuperseded, ownAfter })
  return { selected: letters.length, gone: missing.length, letters, next, rounds }
}, inOneTurn)

/** Counts what is sent from a cursor on. */
const countAll = Effect.fnUntraced(function* (
  selection: DeadLetterSelection,
  options: RedeliveryOptions,
  { newest, upTo }: Sending
) {
  const { chunk: most = defaultChunk, from } = options
  const reasons = new Map<string, number>()
  let plan: RedeliveryPlan = { ...nothing, redeliver: 0, reasons: {} }
  let own = 0
  for (let after = from?.after; ; ) {
    const chunk = yield* planChunk(selection, options, newest, { after, upTo, most })
    const sending = idsIn(chunk.rounds)
    own += ownIn(chunk.rounds)
    for (const { id, reason } of chunk.letters)
      if (sending.has(id)) reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
    plan = withLeft(
      {
        ...plan,
        selected: plan.selected + chunk.selected,
        redeliver: plan.redeliver + sending.size,
        gone: plan.gone + chunk.gone
      },
      chunk.rounds
    )
    if (chunk.next === undefined) return { plan: { ...plan, reasons: sortReasons(reasons) }, own }
    after = chunk.next
  }
})

/** Sends from a cursor on. */
const sendAll = Effect.fnUntraced(function* (
  selection: DeadLetterSelection,
  options: RedeliveryOptions,
  { newest, upTo }: Sending,
  progress: (counts: RoundCounts) => void
) {
  const { chunk: most = defaultChunk, from, onCursor } = options
  const counts: Record<StartedRound, number> = { begun: 0, finished: 0, before: 0, gone: 0 }
  let done: Redelivered = from?.done ?? { ...nothing, redelivered: 0 }
  for (let after = from?.after; ; ) {
    const chunk = yield* planChunk(selection, options, newest, { after, upTo, most })
    const { before, begun, finished, gone } = { ...counts }
    yield* redeliver(chunk.rounds, (_, started) => {
      counts[started]++
      progress(counts)
    })
    done = withLeft(
      {
        ...done,
        selected: done.selected + chunk.selected,
        redelivered:
          done.redelivered +
          ownIn(chunk.rounds) +
          (counts.begun - begun) +
          (counts.finished - finished),
        gone: done.gone + chunk.gone + counts.gone - gone,
        // Others have sent these meanwhile.
        before: done.before + (counts.before - before)
      },
      chunk.rounds
    )
    if (chunk.next === undefined) return done
    after = chunk.next
    onCursor?.({ after, done })
  }
})

/**
 * Plans to send dead letters again, each delivery once: of several selected dead letters of one
 * delivery only the newest is sent. Attempts and deadline begin anew. `run` carries it out; it is
 * safe to interrupt and to run again. Dead letters are selected in chunks, three times: to find the
 * newest of each delivery, to count them, and to send them.
 */
export const planRedelivery = Effect.fnUntraced(function* (
  selection: DeadLetterSelection,
  options: RedeliveryOptions
) {
  const problem = selectionProblem(selection, "send again")
  if (problem !== undefined) return yield* problem
  const upTo = yield* lastLetter
  const sending = { upTo, newest: yield* readNewest(selection, options, upTo) }
  const { own, plan } = yield* countAll(selection, options, sending)
  return {
    plan,
    /** The number of those that this work has sent before it was broken off. */
    own,
    /** @param progress called after each round. */
    run: (progress: (counts: RoundCounts) => void = () => {}) =>
      sendAll(selection, options, sending, progress)
  }
})
