import { Effect, Fiber, Stream } from "effect"
import type { DeadLetterQuery } from "../../src/history/dead-letters.ts"
import { readDeadLetters } from "../../src/history/dead-letters.ts"
import { planRedelivery, redeliver } from "../../src/rounds/redeliver.ts"
import { quiet } from "../kit/consistency.ts"
import { endpoint, history, publishMany, worker } from "../kit/engine.ts"
import type { Receiver } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"

/** The dead letters there are. */
export const lettersOf = (query: DeadLetterQuery = {}) => Stream.runCollect(readDeadLetters(query))

export const planned = (query: DeadLetterQuery = {}, by = "ana@host") =>
  Effect.flatMap(lettersOf(query), (letters) => planRedelivery({ letters, by }))

/** Sends dead letters again, and counts what came of them. */
export const sendAgain = (query: DeadLetterQuery = {}, by = "ana@host") =>
  Effect.gen(function* () {
    const plan = yield* planned(query, by)
    const counts = { begun: 0, finished: 0, before: 0, gone: 0, unfit: 0, late: 0 }
    for (const { before, fresh, late, unfit } of plan) {
      counts.before += before
      counts.late += late
      if (unfit !== undefined) counts.unfit += fresh.length
    }
    yield* redeliver(plan, (_, begun) => counts[begun]++)
    return counts
  })

/** Events that an endpoint refuses for good, so that each is a dead letter. */
export const deadLetters = (count: number, changes: Parameters<typeof endpoint>[0] = {}) =>
  Effect.gen(function* () {
    const hook = yield* receiver({ answer: { status: 400 } })
    yield* endpoint({ url: hook.url, ...changes })
    const facts = yield* history
    const first = yield* Effect.forkScoped(Effect.scoped(Effect.andThen(worker(), Effect.never)))
    yield* publishMany(count)
    yield* facts.count("dead-lettered", count)
    yield* quiet
    hook.answer({ status: 200 })
    return { facts, hook, stop: Fiber.interrupt(first) }
  })

/** Ids that came after the first so many requests, with how often each came. */
export const timesAfter = ({ requests }: Receiver, before: number) => {
  const times = new Map<string, number>()
  for (const { headers } of requests.slice(before)) {
    const id = String(headers["webhook-id"])
    times.set(id, (times.get(id) ?? 0) + 1)
  }
  return times
}

/** Each of the first so many events of `publishMany`, once. */
export const onceEach = (count: number) =>
  new Map(Array.from({ length: count }, (_, n) => [`invoice.paid-${n}`, 1] as const))

export const sorted = (times: ReadonlyMap<string, number>) => [...times].toSorted()
