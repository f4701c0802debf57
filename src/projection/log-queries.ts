import { Deferred, Effect } from "effect"
import { Invalid } from "../domain/problem.ts"
import { present } from "../domain/record.ts"
import { RefusedRequests } from "../metrics/refused-requests.ts"
import { FairLine } from "../policy/fair-turns.ts"
import { timers } from "../time/timers.ts"
import { LogUnavailable, unavailableOf } from "./delivery-log.ts"
import { lastingThread, pauseText, secondsUntil, siblingScript } from "./lasting-thread.ts"
import type { FromQuery, QueryData, ToQuery, UselessFiles } from "./thread-messages.ts"

/** How long an answer may take, ms: a page searches for 40 ms, and others may be before it. */
const answerWithinMs = 10_000
/** Queries of one tenant that wait for their turn: 64 pages take 3 s. */
const maxWaiting = 64
/** Whose turn the queries of operators are, who ask for all tenants. */
const allTenants = "*"

type Question = OmitId<ToQuery>
type OmitId<A> = A extends unknown ? Omit<A, "id"> : never

/** A query, and what waits for its answer. */
interface Asked {
  readonly question: Question
  readonly answered: Deferred.Deferred<FromQuery["result"]>
}

const tenantIn = (question: Question): string =>
  (question.ask === "get" ? question.lookup : question.query).tenant ?? allTenants

const tooMany = new LogUnavailable({
  reason: `${maxWaiting} searches of the tenant wait for their turn: try again when some have ended`
})

/**
 * Starts the thread that answers queries, one after the other: one of each tenant in turn. A query
 * whose asker leaves before its turn is not carried out. Returns how to ask.
 *
 * @param useless called where nothing can be read of the files, with a sentence that says why.
 */
export const startQueries = Effect.fnUntraced(function* (
  data: QueryData,
  useless: (files: UselessFiles, why: string) => void
) {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const refused = yield* RefusedRequests
  const waiting = new FairLine<Asked>(maxWaiting)
  /** What the thread is asked now. */
  let current: Asked | undefined
  const end = (result: FromQuery["result"]) => {
    const asked = current
    current = undefined
    if (asked !== undefined) Deferred.doneUnsafe(asked.answered, Effect.succeed(result))
  }
  const askNext = () => {
    while (current === undefined) {
      current = waiting.next()
      if (current === undefined) return
      if (!tell({ ...current.question, id: ++ids } satisfies ToQuery))
        end({
          unavailable: "the thread that searches it is started again",
          ...present({ retryAfter: secondsUntil(startsAt) })
        })
    }
  }
  let ids = 0
  /** When it was started again last, or is after it has ended, by the monotonic clock. */
  let startsAt = 0
  const tell = yield* lastingThread<FromQuery>({
    script: siblingScript(import.meta.url, "query-thread"),
    data,
    told: ({ id, result }) => {
      if ("unavailable" in result && result.files !== undefined)
        useless(result.files, result.unavailable)
      // A thread that has ended may have answered the query before.
      if (id !== ids) return
      end(result)
      askNext()
    },
    ended: (why, pauseMs) => {
      const sentence = `the thread that searches it has ended (${why}); ${pauseText(pauseMs)}`
      run(Effect.logError(`the delivery log is not searched: ${sentence}`))
      startsAt = timers.monotonicMs() + pauseMs
      end({ unavailable: sentence, ...present({ retryAfter: secondsUntil(startsAt) }) })
      askNext()
    }
  })
  return Effect.fnUntraced(function* (question: Question) {
    const tenant = tenantIn(question)
    const asked: Asked = { question, answered: yield* Deferred.make<FromQuery["result"]>() }
    if (!waiting.add(tenant, asked)) {
      refused.note("searches")
      return yield* tooMany
    }
    askNext()
    const result = yield* Deferred.await(asked.answered).pipe(
      Effect.timeoutOrElse({
        duration: answerWithinMs,
        orElse: () => new LogUnavailable({ reason: "it does not answer; it may be overloaded" })
      }),
      Effect.ensuring(Effect.sync(() => waiting.remove(tenant, asked)))
    )
    if ("unavailable" in result) return yield* unavailableOf(result)
    if ("problem" in result) return yield* new Invalid({ problems: [result.problem] })
    return result
  })
})
