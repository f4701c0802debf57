import { Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { PublishError } from "../../broker/publication.ts"
import { present } from "../../domain/record.ts"
import { jsonOf } from "../../domain/timestamp.ts"
import type { RoundCounts } from "../../rounds/round.ts"
import { withoutCommands } from "../../text/plain-text.ts"
import { timers } from "../../time/timers.ts"
import { AuditReport } from "../audit/run-audit.ts"
import type { DeadLetterSelection } from "../dead-letters/dead-letter-selection.ts"
import type { RedeliveryCursor } from "../dead-letters/redeliver-dead-letters.ts"
import { planRedelivery, Redelivered } from "../dead-letters/redeliver-dead-letters.ts"
import type { ReplayCursor, ReplayRequest } from "../replays/replay-events.ts"
import { Replayed, startReplay } from "../replays/replay-events.ts"
import type { RecoverySelection } from "../retries/recover-endpoint.ts"
import { Recovered, recoverEndpoint } from "../retries/recover-endpoint.ts"
import type { RetryCursor, RetrySelection } from "../retries/retry-waiting.ts"
import { RetriedDeliveries, retryWaiting } from "../retries/retry-waiting.ts"
import { Auditor } from "./audit-work.ts"
import type { JobRecord } from "./job.ts"

/** How far a job has come, and where it goes on. */
type JobStep = Pick<JobRecord, "progress" | "redelivered" | "replayed" | "retried">

/** Stores the present step of a job, which is stored every second otherwise. */
type StoreStep = Effect.Effect<unknown, BrokerError | PublishError, Broker>

/** After this time without being held back, a job counts as held back no more, ms. */
const heldAfterMs = 1_000

/** Where a job notes its steps. */
export class JobWatch {
  step: () => JobStep = () => ({})
  readonly #held = new Set<string>()
  #heldAt = Number.NEGATIVE_INFINITY

  /** Notes how many deliveries wait for an endpoint while it is sent no more, or 0 once it is. */
  readonly hold = (endpoint: string, waiting: number): void => {
    if (waiting > 0) this.#held.add(endpoint)
    else this.#held.delete(endpoint)
    this.#heldAt = timers.monotonicMs()
  }

  /** True while an endpoint is sent no more, also if it takes one now and then. */
  isHeld(): boolean {
    return this.#held.size > 0 || timers.monotonicMs() - this.#heldAt < heldAfterMs
  }
}

const doneIn = ({ before, begun, finished, gone }: RoundCounts): number =>
  before + begun + finished + gone

const redelivered = jsonOf(Redelivered)
const replayed = jsonOf(Replayed)
const audited = jsonOf(AuditReport)
const retried = jsonOf(RetriedDeliveries)
const recovered = jsonOf(Recovered)

/** Notes the counts of rounds. */
const counting = (total: number, before: number) => {
  let done = before
  return {
    progress: () => ({ done, total: Math.max(done, before + total) }),
    note: (counts: RoundCounts) => {
      done = before + doneIn(counts)
    }
  }
}

const redeliver = Effect.fnUntraced(function* (
  { by, historySeq: ownAfter, redelivered: from }: JobRecord,
  selection: DeadLetterSelection,
  watch: JobWatch
) {
  let last = from
  const onCursor = (cursor: RedeliveryCursor) => {
    last = cursor
  }
  const watched = { by, from, onCursor, ownAfter, held: watch.hold }
  const { own, plan, run } = yield* planRedelivery(selection, watched)
  // What others have sent again is no work of this job: it would count as sent if the job ends early.
  const before = (from?.done.redelivered ?? 0) + own
  const { note, progress } = counting(plan.redeliver, before)
  watch.step = () => ({
    progress: progress(),
    ...(last === undefined ? {} : { redelivered: last })
  })
  return redelivered(yield* run(note))
})

const replay = Effect.fnUntraced(function* (
  { by, createdAt: askedAt, historySeq: ownAfter, replayed: from }: JobRecord,
  request: ReplayRequest,
  watch: JobWatch
) {
  let last = from
  const onCursor = (cursor: ReplayCursor) => {
    last = cursor
  }
  const held = (waiting: number) => watch.hold(request.to.id, waiting)
  const watched = { by, from, onCursor, askedAt, ownAfter, held }
  const { before, count, run } = yield* startReplay(request, watched)
  const { note, progress } = counting(count, (from?.done.replayed ?? 0) + before)
  watch.step = () => ({ progress: progress(), ...(last === undefined ? {} : { replayed: last }) })
  return replayed(yield* run(note))
})

const retry = Effect.fnUntraced(function* (
  { by, id, retried: from }: JobRecord,
  selection: RetrySelection,
  watch: JobWatch,
  store: StoreStep
) {
  const onCursor = (cursor: RetryCursor, left: number) => {
    const done = cursor.done.endpoints
    watch.step = () => ({ progress: { done, total: done + left }, retried: cursor })
    return store
  }
  return retried(yield* retryWaiting(selection, { by, from, job: id, onCursor }))
})

const recover = Effect.fnUntraced(function* (
  { by, historySeq: ownAfter, id, redelivered: from, retried: before }: JobRecord,
  selection: RecoverySelection,
  watch: JobWatch,
  store: StoreStep
) {
  let [last, done] = [from, before]
  const cursors = (): JobStep => ({
    ...present({ redelivered: last, retried: done })
  })
  watch.step = cursors
  const retry = {
    ...{ by, from: before, job: id },
    onCursor: (cursor: RetryCursor) => {
      done = cursor
      return store
    }
  }
  const redelivery = {
    ...{ by, from, ownAfter, held: watch.hold },
    onCursor: (cursor: RedeliveryCursor) => {
      last = cursor
    }
  }
  const { own, plan, run } = yield* recoverEndpoint(selection, { retry, redelivery })
  const sent = (from?.done.redelivered ?? 0) + own
  const { note, progress } = counting(plan.redeliver, sent)
  watch.step = () => ({ ...cursors(), progress: progress() })
  return recovered(yield* run(note))
})

/**
 * Carries out a job, or goes on with it: each round begins once, whoever begins it. An audit begins
 * anew. Returns its result as JSON.
 *
 * @param store stores the step that the watch has.
 */
export const runJob = Effect.fnUntraced(function* (
  job: JobRecord,
  watch: JobWatch,
  store: StoreStep
) {
  const { task } = job
  switch (task.kind) {
    case "redelivery":
      return yield* redeliver(job, task.selection, watch)
    case "replay":
      return yield* replay(job, task.replay, watch)
    case "retry":
      return yield* retry(job, task.retry, watch, store)
    case "recovery":
      return yield* recover(job, task.recovery, watch, store)
    case "audit": {
      const auditor = yield* Auditor
      const { problems, report } = yield* auditor(task.audit, (progress) => {
        watch.step = () => present({ progress: progress() })
      })
      const listed = problems.map((one) => ({ ...one, says: withoutCommands(one.says) }))
      return { ...audited(report), listed }
    }
  }
})
