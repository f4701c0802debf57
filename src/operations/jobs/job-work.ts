import { Effect, Schema } from "effect"
import type { Books } from "../../history/audit/books.ts"
import type { StreamReading } from "../../history/audit/stream-reading.ts"
import type { RoundCounts } from "../../rounds/round.ts"
import { AuditReport, runAudit } from "../audit/audit-report.ts"
import { planRedelivery, Redelivered } from "../dead-letters/redeliver-dead-letters.ts"
import { Replayed, startReplay } from "../replays/replay-events.ts"
import type { JobProgress, JobRecord } from "./job.ts"

/** Problems of an audit that a job's result lists: it is one message. */
const maxListed = 100

/** Where a job notes how far it has come. */
export interface JobWatch {
  progress: () => JobProgress | undefined
}

const doneIn = ({ before, begun, finished, gone }: RoundCounts): number =>
  before + begun + finished + gone

const left = ({ next, to }: StreamReading): number => Math.max(0, to - next + 1)

const readIn = ({ events, history }: Books): JobProgress => {
  const done = events.messages + history.messages
  return { done, total: done + left(events) + left(history) }
}

const jsonOf = <A, I>(schema: Schema.Codec<A, I>) => {
  const encode = Schema.encodeSync(schema)
  return (value: A): Record<string, unknown> => ({ ...(encode(value) as object) })
}

const redelivered = jsonOf(Redelivered)
const replayed = jsonOf(Replayed)
const audited = jsonOf(AuditReport)

/** Notes the counts of rounds. */
const counting = (watch: JobWatch, total: number) => {
  let done = 0
  watch.progress = () => ({ done, total: Math.max(done, total) })
  return (counts: RoundCounts) => {
    done = doneIn(counts)
  }
}

/**
 * Carries out a job, or goes on with it: each round begins once, whoever begins it. An audit begins
 * anew. Returns its result as JSON.
 */
export const carryOutJob = Effect.fnUntraced(function* ({ by, task }: JobRecord, watch: JobWatch) {
  switch (task.kind) {
    case "redelivery": {
      const { plan, run } = yield* planRedelivery(task.selection, { by })
      return redelivered(yield* run(counting(watch, plan.redeliver)))
    }
    case "replay": {
      const { count, run } = yield* startReplay(task.replay, { by })
      return replayed(yield* run(counting(watch, count)))
    }
    case "audit": {
      const { problems, report } = yield* runAudit({
        ...task.audit,
        onBegin: (books) => {
          watch.progress = () => readIn(books)
        }
      })
      return { ...audited(report), listed: problems.slice(0, maxListed) }
    }
  }
})
